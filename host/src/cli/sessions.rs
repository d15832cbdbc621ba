//! `hermes sessions`: the stored conversations.
//!
//! Each verb asks the store and prints the answer. Where the home cannot be written, the verbs that only read
//! still work.

mod change;
mod show;

use clap::{Args, Subcommand};

use super::{CliError, Exit, Globals, output};
use crate::config::HermesHome;
use crate::store::{FILE_NAME, Store, StoreError, StoreOptions};

/// Arguments of `hermes sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the sessions, the one used last first
    List {
        /// Show at most so many (0: all)
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
    },
    /// Print the messages of a session
    Show {
        /// The session's id, or the beginning of it
        id: String,
        /// Also print messages that a compaction has archived or a rewind has hidden
        #[arg(long)]
        all: bool,
    },
    /// Find messages in all sessions
    Search {
        /// Words that a message must have; "several words" is a phrase, word* a beginning
        #[arg(required = true)]
        text: Vec<String>,
        /// The best matches first, among the newest 10,000
        #[arg(long)]
        rank: bool,
        /// Show at most so many
        #[arg(long, short = 'n', default_value_t = 20)]
        limit: usize,
        /// Only in this session
        #[arg(long)]
        session: Option<String>,
    },
    /// Print a session as one line of JSON that `import` reads
    Export {
        /// The session's id, or the beginning of it
        id: String,
        /// Also the sessions that it continues or is continued by
        #[arg(long)]
        lineage: bool,
    },
    /// Add the sessions of a file: exports of this host or of Hermes, or recorded conversations
    Import {
        /// The file; - reads the standard input
        file: std::path::PathBuf,
    },
    /// Begin a new session with the messages of another
    Branch {
        /// The session's id, or the beginning of it
        id: String,
        /// The new session's title
        #[arg(long)]
        title: Option<String>,
    },
    /// Take the last N user turns back, over compactions too
    Rewind {
        /// The session's id, or the beginning of it
        id: String,
        /// How many turns
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        turns: u32,
    },
    /// Delete a session with all its messages
    Delete {
        /// The session's id, or the beginning of it
        id: String,
    },
    /// Look whether the store is sound (exit 1 if it is not)
    Check {
        /// Put right what is out of step, after a backup
        #[arg(long)]
        repair: bool,
    },
}

/// Runs the command on the home's store.
pub fn run(args: SessionsArgs, globals: &Globals) -> Result<Exit, CliError> {
    let json = globals.json;
    match args.command {
        SessionsCommand::List { limit } => show::list(limit, json),
        SessionsCommand::Show { id, all } => show::show(&id, all, json),
        SessionsCommand::Search {
            text,
            rank,
            limit,
            session,
        } => show::search(&text.join(" "), rank, limit, session.as_deref(), json),
        SessionsCommand::Export { id, lineage } => show::export(&id, lineage, json),
        SessionsCommand::Import { file } => change::import(&file, json),
        SessionsCommand::Branch { id, title } => change::branch(&id, title.as_deref(), json),
        SessionsCommand::Rewind { id, turns } => change::rewind(&id, turns, json),
        SessionsCommand::Delete { id } => change::delete(&id, json),
        SessionsCommand::Check { repair } => change::check(repair, json),
    }
}

/// Sessions as a table for people.
pub(super) fn table(sessions: &[crate::store::Session]) -> impl std::fmt::Display {
    show::of_sessions(sessions)
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        let hint = match &error {
            StoreError::Busy { .. } => "another hermes may be at work; try again when it is done",
            StoreError::NothingToRewind { .. } => "`hermes sessions show ID` prints what is there",
            StoreError::Import { .. } => "mend or remove that line and import the file again",
            _ => "",
        };
        CliError::new(error.kind(), error.to_string()).hint(hint)
    }
}

/// What is drawn on a terminal while long work goes on.
struct Bar(Option<indicatif::ProgressBar>);

impl Bar {
    fn new() -> Self {
        Self(output::shows_progress().then(indicatif::ProgressBar::hidden))
    }

    fn tell(&mut self, what: &'static str, done: u64, of: u64) {
        let Some(bar) = &self.0 else { return };
        if bar.is_hidden() {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        bar.set_length(of);
        bar.set_message(what);
        bar.set_position(done);
    }

    fn done(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}

fn options() -> StoreOptions {
    StoreOptions {
        on_wait: Some(std::sync::Arc::new(
            |waiting: &crate::store::Waiting<'_>| {
                // Once is enough to know what a silent terminal waits for.
                if waiting.waited.as_secs() == 1 {
                    output::warning(format!(
                        "waiting to {}: another process has the write lock",
                        waiting.doing
                    ));
                }
            },
        )),
        ..StoreOptions::default()
    }
}

/// Opens the store for changes, making it where it is missing.
fn open() -> Result<Store, CliError> {
    let mut bar = Bar::new();
    let path = HermesHome::from_env().path().join(FILE_NAME);
    let store = Store::open_with_progress(&path, options(), &mut |what, done, of| {
        bar.tell(what, done, of)
    });
    bar.done();
    let store = store?;
    if let Some(backup) = &store.upgraded().backup {
        output::warning(format!(
            "the session store was brought up to date; as it was it is kept in {}",
            backup.display()
        ));
    }
    Ok(store)
}

/// Opens the store for reading; `None` when there is none yet, which a look does not change.
fn open_to_read() -> Result<Option<Store>, CliError> {
    let path = HermesHome::from_env().path().join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    match Store::open(&path, options()) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::ReadOnly { .. } | StoreError::Open { .. } | StoreError::Full { .. }) => {
            Ok(Some(Store::open_read_only(&path, options())?))
        }
        Err(error) => Err(error.into()),
    }
}

/// The full id that a person's beginning of one stands for, in a store that must be there.
fn find(store: Option<Store>, id: &str) -> Result<(Store, String), CliError> {
    let Some(store) = store else {
        return Err(StoreError::NoSession { id: id.to_owned() }.into());
    };
    let id = store.find_session(id)?;
    Ok((store, id))
}
