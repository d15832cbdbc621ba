//! What a message says: nothing, a text, or a list of parts.

use std::borrow::Cow;

use crate::json;

/// The value of `content`.
#[derive(Debug, Clone)]
pub enum Content<'a> {
    /// There is no such key.
    Missing,
    /// `null`.
    Null,
    /// A string.
    Text(Cow<'a, str>),
    /// A list.
    Parts(Vec<Part<'a>>),
    /// A value that no provider takes: a number, a literal, an object.
    Other(&'a str),
}

/// What one part of a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartKind {
    /// `text`, `input_text`, `output_text`, or a bare string.
    Text,
    /// `refusal`.
    Refusal,
    /// `image_url`, `input_image`, `image`.
    Image,
    /// `input_audio`, `audio`.
    Audio,
    /// `file`, `input_file`, `document`.
    File,
    /// Anything else.
    Other,
}

/// One entry of a list of parts.
#[derive(Debug, Clone)]
pub struct Part<'a> {
    /// What it is.
    pub kind: PartKind,
    /// Its words, if it has any.
    pub text: Option<Cow<'a, str>>,
    /// The entry as it is written.
    pub raw: &'a str,
}

impl<'a> Part<'a> {
    pub(crate) fn read(raw: &'a str) -> Self {
        if let Some(text) = json::string(raw) {
            return Self {
                kind: PartKind::Text,
                text: Some(text),
                raw,
            };
        }
        let members = json::members(raw).unwrap_or_default();
        let value = |key: &str| {
            members
                .iter()
                .rev()
                .find(|m| m.key == key)
                .map(|m| m.value(raw))
        };
        let kind = match value("type").and_then(json::string).as_deref() {
            Some("text" | "input_text" | "output_text") => PartKind::Text,
            Some("refusal") => PartKind::Refusal,
            Some("image_url" | "input_image" | "image") => PartKind::Image,
            Some("input_audio" | "audio") => PartKind::Audio,
            Some("file" | "input_file" | "document") => PartKind::File,
            _ => PartKind::Other,
        };
        let words = match kind {
            PartKind::Text => value("text"),
            PartKind::Refusal => value("refusal"),
            _ => None,
        };
        Self {
            kind,
            text: words.and_then(json::string),
            raw,
        }
    }

    /// Whether nobody would see anything of it.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        matches!(self.kind, PartKind::Text | PartKind::Refusal)
            && self.text.as_ref().is_none_or(|text| text.trim().is_empty())
    }
}

impl<'a> Content<'a> {
    pub(crate) fn read(raw: &'a str) -> Self {
        match raw.as_bytes().first() {
            Some(b'"') => json::string(raw).map_or(Self::Other(raw), Self::Text),
            Some(b'[') => {
                let parts = json::elements(raw).unwrap_or_default();
                Self::Parts(parts.into_iter().map(Part::read).collect())
            }
            Some(b'n') => Self::Null,
            _ => Self::Other(raw),
        }
    }

    /// Whether there is no visible content: nothing, `null`, blanks, an empty list, empty text parts.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Missing | Self::Null => true,
            Self::Text(text) => text.trim().is_empty(),
            Self::Parts(parts) => parts.iter().all(Part::is_blank),
            Self::Other(_) => false,
        }
    }

    /// The text; of a list, its text parts joined by line breaks.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
                let mut texts = parts
                    .into_iter()
                    .filter(|p| p.kind == PartKind::Text)
                    .filter_map(|p| p.text);
                let Some(first) = texts.next() else {
                    return Cow::Borrowed("");
                };
                texts.fold(first, |mut all, next| {
                    let text = all.to_mut();
                    text.push('\n');
                    text.push_str(&next);
                    all
                })
            }
            Self::Missing | Self::Null | Self::Other(_) => Cow::Borrowed(""),
        }
    }
}
