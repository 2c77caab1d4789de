//! Files that are named on the command line, each no larger than what is known of real ones by far.

use std::io::Read;
use std::path::Path;

use crate::core::snapshot::unpack;

/// Whether it stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a file is read as, and so how large it may be: each is far beyond what is known of real ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Objects of a cluster.
    Snapshot,
    Catalog,
    Facts,
    /// Findings that are known.
    Baseline,
    /// One stream of definitions, as large as all files of a revision may be.
    Definitions,
    /// The settings, as large as a file of a revision may be.
    Settings,
    /// What `preview` wrote: that of a thousand clusters has less.
    Preview,
    /// Instances that a process kept.
    Instances,
    /// What notifications are made from; how long it may be is in `render`.
    Template,
}

impl FileKind {
    pub const ALL: [Self; 9] = [
        Self::Snapshot,
        Self::Catalog,
        Self::Facts,
        Self::Baseline,
        Self::Definitions,
        Self::Settings,
        Self::Preview,
        Self::Instances,
        Self::Template,
    ];

    pub const fn bytes_max(self) -> u64 {
        match self {
            Self::Snapshot => unpack::UNPACKED_BYTES_MAX,
            Self::Definitions | Self::Catalog | Self::Instances => 256 << 20,
            Self::Facts | Self::Baseline | Self::Preview => 64 << 20,
            Self::Settings => 8 << 20,
            Self::Template => 1 << 20,
        }
    }

    /// For the page of limits.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Snapshot => "a snapshot",
            Self::Catalog => "a catalog",
            Self::Facts => "facts of EC2",
            Self::Baseline => "a baseline of findings",
            Self::Definitions => "definitions on standard input",
            Self::Settings => "cutlist.yaml",
            Self::Preview => "a preview",
            Self::Instances => "instances that a process kept",
            Self::Template => "a template of notifications",
        }
    }
}

/// The content of a file, or of standard input for `-`. A file that never ends, such as a pipe, is an error that names the limit.
pub fn read_file(path: &Path, kind: FileKind) -> std::io::Result<Vec<u8>> {
    let bytes_max = kind.bytes_max();
    let mut bytes = Vec::new();
    let length = if is_stdin(path) {
        std::io::stdin().lock().take(bytes_max + 1).read_to_end(&mut bytes)?
    } else {
        let file = std::fs::File::open(path)?;
        // Known at once, a large file is not copied as the room for it grows.
        bytes.try_reserve(usize::try_from(file.metadata()?.len().min(bytes_max)).unwrap_or_default())?;
        file.take(bytes_max + 1).read_to_end(&mut bytes)?
    };
    match length as u64 > bytes_max {
        true => Err(std::io::Error::other(format!(
            "it has more than {bytes_max} bytes, which is the most that is read of {}",
            kind.what()
        ))),
        false => Ok(bytes),
    }
}

/// The same of text.
pub fn read_text(path: &Path, kind: FileKind) -> std::io::Result<String> {
    String::from_utf8(read_file(path, kind)?)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused_by_its_limit() {
        for kind in FileKind::ALL.into_iter().filter(|kind| kind.bytes_max() <= 64 << 20) {
            let error = read_file(Path::new("/dev/zero"), kind).unwrap_err().to_string();
            assert!(error.contains(&kind.bytes_max().to_string()) && error.contains(kind.what()), "{error}");
        }
    }
}
