//! One folder of copies: written beside its place, moved there in one step, and never believed unread.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::hold::hold;
use super::{CopyError, Piece, TrustCheck, sha256_of_file};

/// The folder with these files, made if it is not there yet or does not hold what it should.
pub(super) fn ensure(
    cache: &Path,
    sha256: &str,
    pieces: &[Piece],
    trust: &mut TrustCheck,
) -> Result<PathBuf, CopyError> {
    let failed = |what| {
        move |error: io::Error| CopyError::Cache {
            folder: cache.to_owned(),
            what,
            reason: error.to_string(),
        }
    };
    private_folder(cache).map_err(failed("written"))?;
    let cache_real = cache.canonicalize().map_err(failed("read"))?;
    let folder = cache_real.join(sha256);
    // Another process may remove a damaged copy or write the same one at any moment: a few rounds settle it.
    for _ in 0..4 {
        if folder.exists() {
            // First, so that nobody removes what is being looked at.
            if !hold(&folder) {
                continue;
            }
            if is_intact(&folder, pieces) {
                for piece in pieces {
                    trust.file(&folder.join(&piece.name))?;
                }
                return Ok(folder);
            }
            set_aside(&folder).map_err(failed("replaced"))?;
        }
        write(&cache_real, &folder, pieces).map_err(failed("written"))?;
    }
    Err(CopyError::Cache {
        folder,
        what: "kept",
        reason: "something changes it again and again".to_owned(),
    })
}

fn is_intact(folder: &Path, pieces: &[Piece]) -> bool {
    pieces.iter().all(|piece| {
        let path = folder.join(&piece.name);
        fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file())
            && sha256_of_file(&path).is_ok_and(|found| found == piece.sha256)
    })
}

/// Moves a damaged copy out of the way. A process that has it mapped keeps its pages.
fn set_aside(folder: &Path) -> io::Result<()> {
    let aside = folder.with_extension(format!("damaged-{}", uuid::Uuid::new_v4().simple()));
    match fs::rename(folder, &aside) {
        Ok(()) => {
            // Left-overs do no harm; they are never looked at again.
            let _ = fs::remove_dir_all(&aside);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn write(cache: &Path, folder: &Path, pieces: &[Piece]) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o700));
    }
    let draft = builder.tempdir_in(cache)?;
    for piece in pieces {
        let path = draft.path().join(&piece.name);
        let mut file = fs::File::create_new(&path)?;
        file.write_all(&piece.bytes)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.set_permissions(fs::Permissions::from_mode(0o500))?;
        }
        file.sync_data()?;
    }
    let draft = draft.keep();
    match fs::rename(&draft, folder) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_dir_all(&draft);
            // Another process was faster: its copy is checked like any other.
            if folder.exists() { Ok(()) } else { Err(error) }
        }
    }
}

/// A folder that only we can enter.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}
