//! The line editor: history in a file, several lines by paste or Alt-Enter, completion of commands.

use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};

use reedline::{
    ColumnarMenu, DefaultCompleter, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};

use super::super::{CliError, output};
use super::command;
use super::desk::Desk;
use super::input::Taken;

/// The history's file in the user's folder.
const FILE: &str = "chat_history";

/// Lines of it that are kept.
const LINES: usize = 2_000;

/// How close together two Ctrl-C mean that the user wants to leave.
const TWICE: Duration = Duration::from_secs(2);

const MENU: &str = "commands";

/// An editor for the lines of one conversation.
pub(super) struct Editor {
    editor: Reedline,
    status: String,
    /// When the user last pressed Ctrl-C.
    stopped: Option<Instant>,
}

impl Editor {
    /// An editor on this process's terminal. Without a history file it has none.
    pub(super) fn open(desk: &Desk, home: &Path) -> Self {
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu(MENU.to_owned()),
                ReedlineEvent::MenuNext,
            ]),
        );
        keys.add_binding(
            KeyModifiers::ALT,
            KeyCode::Enter,
            ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
        );
        let mut completer = DefaultCompleter::with_inclusions(&['/']).set_min_word_len(1);
        completer.insert(command::names().collect());
        let mut editor = Reedline::create()
            .use_bracketed_paste(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_completer(Box::new(completer))
            .with_quick_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(
                ColumnarMenu::default().with_name(MENU),
            )))
            .with_break_signal(desk.stop_editing());
        let file = home.join(FILE);
        match private(&file).and_then(|()| {
            FileBackedHistory::with_file(LINES, file.clone()).map_err(std::io::Error::other)
        }) {
            Ok(history) => editor = editor.with_history(Box::new(history)),
            Err(error) => output::warning(format!(
                "no history of lines: {} cannot be used: {error}",
                file.display()
            )),
        }
        Self {
            editor,
            status: String::new(),
            stopped: None,
        }
    }

    pub(super) fn show(&mut self, status: &str) {
        status.clone_into(&mut self.status);
    }

    pub(super) fn prefill(&mut self, text: &str) {
        self.editor
            .run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
    }

    /// Waits for a line. Ctrl-C empties the line, and twice in a row leaves; Ctrl-D on an empty line leaves.
    pub(super) fn take(&mut self) -> Result<Taken, CliError> {
        loop {
            let prompt = Above(&self.status);
            match self.editor.read_line(&prompt) {
                Ok(Signal::Success(line)) => {
                    self.stopped = None;
                    // Whatever ends the process, the line is kept.
                    if let Err(error) = self.editor.sync_history() {
                        tracing::info!(%error, "the history of lines could not be written");
                    }
                    return Ok(Taken::Line(line));
                }
                Ok(Signal::CtrlC) if self.stopped.is_some_and(|at| at.elapsed() < TWICE) => {
                    return Ok(Taken::End);
                }
                Ok(Signal::CtrlC) => {
                    self.stopped = Some(Instant::now());
                    output::progress("Ctrl-C once more, Ctrl-D or /quit leave");
                }
                Ok(Signal::CtrlD | Signal::ExternalBreak(_)) => return Ok(Taken::End),
                Ok(_) => {}
                Err(error) => {
                    return Err(CliError::new(
                        "io",
                        format!("the terminal cannot be used: {error}"),
                    ));
                }
            }
        }
    }
}

/// What was typed is nobody else's business.
fn private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}

/// The status line above, the prompt below it.
struct Above<'a>(&'a str);

impl Prompt for Above<'_> {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Owned(format!("[{}]\n", self.0))
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not found: ",
        };
        Cow::Owned(format!("({failing}{}) ", search.term))
    }
}
