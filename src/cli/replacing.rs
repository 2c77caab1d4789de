//! Files that are written whole, or not at all.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

/// What a new file may be, before the umask of who runs this.
const MODE_OF_NEW: u32 = 0o666;

/// Puts a new file in the place of the old one, at once: a reader sees the one or the other. A link stays a link.
pub fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("{} can not be written", path.display());
    let target = path.canonicalize().with_context(context)?;
    let replace = || {
        let permissions = target.metadata()?.permissions();
        match permissions.readonly() {
            true => Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied)),
            false => put(&target, Some(permissions), text),
        }
    };
    replace().with_context(context)
}

/// Writes a file, at once, whether or not one is there: who is interrupted leaves what was. A link to a file gives way to it, since whoever
/// proposes a change may put one there. Devices and pipes are meant.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = match path.metadata() {
        Ok(there) if !there.is_file() => std::fs::write(path, text),
        there => put(path, there.ok().map(|it| it.permissions()), text),
    };
    written.with_context(|| format!("{} can not be written", path.display()))
}

/// Writes a file beside the target, and then in its place. `permissions`: those of what is there.
fn put(target: &Path, permissions: Option<Permissions>, text: &str) -> std::io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new();
    if permissions.is_none() {
        beside.permissions(Permissions::from_mode(MODE_OF_NEW));
    }
    let mut file = beside.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts.json");
        write(&path, "one").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let opened = std::fs::File::open(&path).unwrap();
        write(&path, "other").unwrap();
        assert_eq!(std::io::read_to_string(opened).unwrap(), "one", "who reads the old one reads all of it");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "other");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        let (outside, link) = (folder.path().join("outside"), folder.path().join("link"));
        std::fs::write(&outside, "kept").unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!((std::fs::read_to_string(&outside).unwrap().as_str(), link.is_symlink()), ("kept", false));
        let error = write(&folder.path().join("no/facts.json"), "").unwrap_err();
        assert!(error.to_string().ends_with("no/facts.json can not be written"), "{error}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 3, "nothing else is left");
    }
}
