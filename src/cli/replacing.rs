//! A file that takes the place of one that is there.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Puts a new file in the place of the old one, at once: a reader sees the one or the other. A link stays a link.
pub fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("{} can not be written", path.display());
    let target = path.canonicalize().with_context(context)?;
    let folder = target.parent().map_or_else(PathBuf::new, Path::to_owned);
    let write = || -> std::io::Result<()> {
        let permissions = std::fs::metadata(&target)?.permissions();
        if permissions.readonly() {
            return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
        }
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(permissions)?;
        file.as_file().sync_all()?;
        file.persist(&target)?;
        Ok(())
    };
    write().with_context(context)
}
