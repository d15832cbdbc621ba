//! The headings of a summary, the same for both kinds of author.

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// What was being asked when the summary was made.
    Snapshot,
    /// What it is all about.
    Goal,
    /// What the user wants kept to.
    Constraints,
    /// What has been done, with what outcome.
    Actions,
    /// How things stand.
    State,
    /// What waits for something.
    Blocked,
    /// What was decided, and why.
    Decisions,
    /// What went wrong, and what helped.
    Errors,
    /// What was asked and answered.
    Resolved,
    /// Files that matter.
    Files,
    /// Everything else that must not be lost.
    Critical,
}

/// All sections in their order. The headings say "historical" where a model could take a section for work to do.
pub const ALL: [(Section, &str); 11] = [
    (Section::Snapshot, "## Historical Task Snapshot"),
    (Section::Goal, "## Goal"),
    (Section::Constraints, "## Constraints & Preferences"),
    (Section::Actions, "## Completed Actions"),
    (Section::State, "## State At That Time"),
    (Section::Blocked, "## Blocked"),
    (Section::Decisions, "## Key Decisions"),
    (Section::Errors, "## Errors & Fixes"),
    (Section::Resolved, "## Resolved Questions"),
    (Section::Files, "## Relevant Files"),
    (Section::Critical, "## Critical Context"),
];

impl Section {
    /// The heading.
    #[must_use]
    pub fn heading(self) -> &'static str {
        ALL.iter()
            .find(|(section, _)| *section == self)
            .map_or("", |(_, heading)| heading)
    }

    /// The section with a heading; headings of other authors are matched by their first words.
    #[must_use]
    pub fn of_heading(line: &str) -> Option<Self> {
        let line = line.trim().trim_end_matches(':');
        if let Some((section, _)) = ALL.iter().find(|(_, heading)| *heading == line) {
            return Some(*section);
        }
        let title = line
            .strip_prefix('#')?
            .trim_start_matches('#')
            .trim()
            .to_lowercase();
        let known = [
            ("goal", Self::Goal),
            ("constraint", Self::Constraints),
            ("completed", Self::Actions),
            ("active state", Self::State),
            ("blocked", Self::Blocked),
            ("key decision", Self::Decisions),
            ("decision", Self::Decisions),
            ("error", Self::Errors),
            ("resolved", Self::Resolved),
            ("relevant file", Self::Files),
            ("historical task", Self::Snapshot),
        ];
        Some(
            known
                .iter()
                .find(|(start, _)| title.starts_with(start))
                .map_or(Self::Critical, |(_, section)| *section),
        )
    }
}
