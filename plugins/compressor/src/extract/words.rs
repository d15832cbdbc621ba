//! Words of a sentence, and which of them carry information.

/// What a word looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `src/main.rs`, `/etc/hosts`, `Cargo.toml`.
    Path,
    /// `https://…`.
    Address,
    /// Holds a digit.
    Number,
    /// `snake_case`, `camelCase`, `a::b`, `CONSTANT_NAME`.
    Identifier,
    /// Begins with a capital letter inside a sentence.
    Name,
    /// Any other.
    Plain,
}

/// One word, without the punctuation around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) shape: Shape,
}

fn joins(c: char) -> bool {
    matches!(
        c,
        '_' | '-' | '.' | '/' | ':' | '@' | '#' | '\\' | '~' | '+' | '%' | '$' | '=' | '&' | '?'
    )
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut sentence_begins = true;
    plain_words(text).map(move |(word, ends)| {
        let shape = shape(word, sentence_begins);
        sentence_begins = ends;
        Word { text: word, shape }
    })
}

/// The words alone, and whether a sentence ends behind them.
pub(crate) fn plain_words(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split(|c: char| !is_part(c)).filter_map(|raw| {
        if raw.is_empty() {
            return None;
        }
        let ends = raw.ends_with(['.', '?', ':']);
        let word = raw
            .trim_end_matches(['.', ':', '-', '=', '?', '&', '+'])
            .trim_start_matches([':', '-', '=', '?', '&', '+']);
        word.contains(char::is_alphanumeric).then_some((word, ends))
    })
}

fn is_part(c: char) -> bool {
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || joins(c)
    } else {
        c.is_alphanumeric()
    }
}

fn shape(word: &str, first: bool) -> Shape {
    let mut letters = 0_usize;
    let (mut digit, mut upper, mut lower, mut inner_upper) = (false, false, false, false);
    // Marks without which a word is no address, path or identifier, so that most words are not searched for them.
    let (mut separator, mut colon, mut mark) = (false, false, false);
    for c in word.chars() {
        let (is_upper, is_lower, is_letter) = if c.is_ascii() {
            match c {
                '0'..='9' => digit = true,
                '/' | '\\' | '.' => separator = true,
                ':' => colon = true,
                '_' | '@' => mark = true,
                _ => {}
            }
            (
                c.is_ascii_uppercase(),
                c.is_ascii_lowercase(),
                c.is_ascii_alphabetic(),
            )
        } else {
            (c.is_uppercase(), c.is_lowercase(), c.is_alphabetic())
        };
        if is_letter {
            inner_upper |= letters > 0 && lower && is_upper;
            letters += 1;
            upper |= is_upper;
            lower |= is_lower;
        }
    }
    if colon && word.contains("://") {
        return Shape::Address;
    }
    if separator && letters > 0 && is_path(word) {
        return Shape::Path;
    }
    if digit {
        return Shape::Number;
    }
    if mark || inner_upper || colon && word.contains("::") {
        return Shape::Identifier;
    }
    // Constants and abbreviations count as names: they are chosen words.
    let capital = word.chars().next().is_some_and(char::is_uppercase);
    if letters > 1 && ((capital && !first) || (upper && !lower && letters <= 12 && letters > 2)) {
        return Shape::Name;
    }
    Shape::Plain
}

/// A word with separators, or a file name with a short extension.
pub(crate) fn is_path(word: &str) -> bool {
    if word.contains('/') {
        let pieces = word.split('/').filter(|piece| !piece.is_empty()).count();
        return pieces > 1 || word.starts_with('/') || word.starts_with("~/");
    }
    if word.contains('\\') {
        return word.split('\\').filter(|piece| !piece.is_empty()).count() > 1;
    }
    word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=5).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.bytes().any(|b| b.is_ascii_alphabetic())
            && stem.chars().any(char::is_alphabetic)
            && !matches!(stem, "e.g" | "i.e" | "e" | "i")
    })
}

/// A number for a word, the same for both cases of its ASCII letters. FNV-1a: short inputs, no need for more.
pub(crate) fn key(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The sentences and lines of a text; long ones are cut at word borders.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(split_line)
        .map(|part| part.trim())
        .filter(|part| part.len() > 2)
}

fn split_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = sentence_end(rest);
        let (sentence, tail) = rest.split_at(end);
        rest = tail;
        Some(sentence)
    })
}

/// Where the first sentence of a line ends.
fn sentence_end(line: &str) -> usize {
    const LONGEST: usize = 400;
    let mut blank = None;
    for (at, c) in line.char_indices() {
        // Most characters are letters, and end nothing.
        if c.is_ascii_alphanumeric() && at + 1 < LONGEST {
            continue;
        }
        let after = at + c.len_utf8();
        match c {
            '。' | '！' | '？' | '；' => return after,
            '.' | '!' | '?'
                if after > 12 && line[after..].chars().next().is_none_or(char::is_whitespace) =>
            {
                return after;
            }
            c if c.is_whitespace() => blank = Some(after),
            _ => {}
        }
        if after >= LONGEST {
            return blank.unwrap_or(after);
        }
    }
    line.len()
}
