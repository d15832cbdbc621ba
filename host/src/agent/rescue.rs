//! The last resort for messages that the store did not take.

use std::io::Write;
use std::path::{Path, PathBuf};

use hermes_message::Message;

/// Writes a conversation to a file of its own, for `hermes sessions import`: below the user's folder, or where the
/// system keeps what is temporary if that cannot be written either.
pub(super) fn keep(home: &Path, messages: &[Message]) -> std::io::Result<PathBuf> {
    let beside = home.join("unsaved");
    write(&beside, messages).or_else(|_| write(&std::env::temp_dir(), messages))
}

fn write(folder: &Path, messages: &[Message]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    // Readable by its owner only, as the store is.
    let mut file = tempfile::Builder::new()
        .prefix("hermes-conversation-")
        .suffix(".jsonl")
        .tempfile_in(folder)?;
    for message in messages {
        writeln!(file, "{}", message.to_json_with_identity())?;
    }
    file.as_file().sync_all()?;
    let (_, path) = file.keep()?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_message::build;

    #[test]
    fn what_was_kept_can_be_read_again() {
        let home = tempfile::tempdir().expect("a folder");
        let messages = [build::user("a\nb"), build::assistant("c")];
        let path = keep(home.path(), &messages).expect("written");
        assert!(path.starts_with(home.path().join("unsaved")));
        let file = hermes_message::format::read(&std::fs::read(&path).expect("readable"))
            .expect("a conversation");
        assert_eq!(file.conversations[0].messages, messages);
    }

    #[test]
    fn a_home_that_cannot_be_written_does_not_lose_it() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("file");
        std::fs::write(&file, "no folder").expect("written");
        let path = keep(&file, &[build::user("kept")]).expect("written elsewhere");
        assert!(!path.starts_with(&file));
        std::fs::remove_file(path).expect("removed");
    }
}
