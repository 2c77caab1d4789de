//! The files of one reading, within stated limits; and notes about what was left out.

use crate::api::source::{SourceFile, Standing, is_worth_a_note};
use crate::core::plan::{Note, NoteCode};

/// One file of definitions. The largest that people keep are generated lists of some hundred kilobytes.
pub(super) const FILE_BYTES_MAX: usize = 8 << 20;
/// All files of a revision together; they are held in memory.
const TOTAL_BYTES_MAX: usize = 256 << 20;
/// Files and folders looked at, also those that can not hold definitions. Ten times a large repository of manifests.
const ENTRIES_MAX: usize = 500_000;
/// Folders in folders. Deeper ones are made by mistake, or to exhaust the reader.
pub(super) const DEPTH_MAX: usize = 100;
/// All paths of a tree together, before it is merged or compared: some 800,000 of usual length, twice what the largest public repositories have.
pub(super) const PATHS_BYTES_MAX: usize = 128 << 20;
/// Paths that a note spells out.
const PATHS_SHOWN_MAX: usize = 5;

/// More than is read at most. Nothing is cut off in silence: a definition that is missing would remove nodes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LimitError {
    #[error("the definitions are larger than {} MiB together", TOTAL_BYTES_MAX >> 20)]
    TooManyBytes,
    #[error("there are more than {ENTRIES_MAX} files and folders")]
    TooManyEntries,
    #[error(
        "the paths of all files and folders of a commit are larger than {} MiB together, so that it is not merged or compared",
        PATHS_BYTES_MAX >> 20
    )]
    TooManyPaths,
    #[error("`{path}` is more than {DEPTH_MAX} folders deep")]
    TooDeep { path: String },
    #[error("`{path}` has {bytes} bytes, and at most {bytes_max} are read of {what}")]
    TooLarge { path: String, bytes: usize, bytes_max: u64, what: &'static str },
}

impl LimitError {
    /// Whether what is read as a whole is too large for that. `bytes`: as its header says.
    pub(super) fn check_size((path, bytes): (&str, usize), bytes_max: u64, what: &'static str) -> Result<(), Self> {
        let is_within = bytes as u64 <= bytes_max;
        let error = || Self::TooLarge { path: path.to_owned(), bytes, bytes_max, what };
        if is_within { Ok(()) } else { Err(error()) }
    }
}

/// Why an entry was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeftOut {
    SymbolicLink,
    Submodule {
        /// What it is at, where that is known.
        commit: Option<String>,
    },
}

/// What a file holds.
pub(super) enum Content {
    Read(Vec<u8>),
    TooLarge,
    /// With the reason, in the system's words.
    Unreadable(String),
}

impl Content {
    pub fn nothing() -> Self {
        Self::Read(Vec::new())
    }

    /// What was read; nothing of a file that was not.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(content) => content,
            Self::TooLarge | Self::Unreadable(_) => &[],
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Collector {
    files: Vec<SourceFile>,
    bytes: usize,
    entries: usize,
    links: Vec<String>,
    submodules: Vec<String>,
}

impl Collector {
    /// Counts an entry before anything is done with it. `depth` is the number of folders above it.
    pub fn enter(&mut self, path: &str, depth: usize) -> Result<(), LimitError> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(LimitError::TooManyEntries);
        }
        if depth > DEPTH_MAX {
            return Err(LimitError::TooDeep { path: path.to_owned() });
        }
        Ok(())
    }

    /// Whether a file of this size is not read. Whether it is missed is not known here: settings say which files are.
    pub fn is_too_large(bytes: u64) -> bool {
        bytes > FILE_BYTES_MAX as u64
    }

    pub fn add(&mut self, path: String, content: Content, standing: Standing) -> Result<(), LimitError> {
        let (content, standing) = match content {
            Content::Read(content) if content.len() <= FILE_BYTES_MAX => (content, standing),
            Content::Read(_) | Content::TooLarge => (Vec::new(), Standing::TooLarge),
            Content::Unreadable(reason) => (reason.into_bytes(), Standing::Unreadable),
        };
        self.bytes += content.len();
        if self.bytes > TOTAL_BYTES_MAX {
            return Err(LimitError::TooManyBytes);
        }
        self.files.push(SourceFile { path, content, standing });
        Ok(())
    }

    pub fn leave_out(&mut self, path: &str, why: LeftOut) -> Result<(), LimitError> {
        let (standing, content) = match why {
            LeftOut::SymbolicLink => {
                self.links.extend(is_worth_a_note(path).then(|| path.to_owned()));
                (Standing::LinkNotFollowed, Content::nothing())
            }
            LeftOut::Submodule { commit } => {
                self.submodules.push(path.to_owned());
                (Standing::Submodule, Content::Read(commit.unwrap_or_default().into_bytes()))
            }
        };
        self.add(path.to_owned(), content, standing)
    }

    /// Files and notes, both in the order of paths.
    pub fn finish(mut self) -> (Vec<SourceFile>, Vec<Note>) {
        self.files.sort();
        let notes = [
            note(
                NoteCode::SymbolicLinksLeftOut,
                "symbolic links that lead nowhere, or out of the repository, are not followed",
                self.links,
            ),
            note(NoteCode::SubmodulesLeftOut, "submodules are not read", self.submodules),
        ];
        (self.files, notes.into_iter().flatten().collect())
    }
}

fn note(code: NoteCode, text: &str, paths: Vec<String>) -> Option<Note> {
    (!paths.is_empty()).then(|| Note::new(code, format!("{text}: {}", listed(paths))))
}

/// The first few of `paths` in their order, and how many more there are.
pub(super) fn listed(mut paths: Vec<String>) -> String {
    paths.sort();
    let more = paths.len().saturating_sub(PATHS_SHOWN_MAX);
    paths.truncate(PATHS_SHOWN_MAX);
    let shown = paths.join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_left_out() {
        let mut collector = Collector::default();
        collector.leave_out("pool.yaml", LeftOut::SymbolicLink).unwrap();
        collector.leave_out("pools", LeftOut::SymbolicLink).unwrap();
        collector.leave_out("logo.png", LeftOut::SymbolicLink).unwrap();
        collector.leave_out("vendor", LeftOut::Submodule { commit: None }).unwrap();
        let (_, notes) = collector.finish();
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        let links = "symbolic links that lead nowhere, or out of the repository, are not followed: pool.yaml, pools";
        assert_eq!(texts, [links, "submodules are not read: vendor"]);
    }

    #[test]
    fn refuses_what_is_too_much() {
        let mut collector = Collector::default();
        let path = || "a.yaml".to_owned();
        for bytes in [FILE_BYTES_MAX, FILE_BYTES_MAX + 1] {
            assert_eq!(collector.add(path(), Content::Read(vec![0; bytes]), Standing::Own), Ok(()));
        }
        assert_eq!(collector.files[0].standing, Standing::Own);
        assert_eq!((&collector.files[1].standing, collector.files[1].content.len()), (&Standing::TooLarge, 0));
        let error = LimitError::check_size(("blue/now.json", 11), 10, "a snapshot").unwrap_err();
        assert_eq!(error.to_string(), "`blue/now.json` has 11 bytes, and at most 10 are read of a snapshot");
        assert!(LimitError::check_size(("blue/now.json", 10), 10, "a snapshot").is_ok());
        assert_eq!(collector.enter("a", DEPTH_MAX + 1), Err(LimitError::TooDeep { path: "a".to_owned() }));
        let mut collector = Collector { entries: ENTRIES_MAX - 1, ..Collector::default() };
        assert_eq!(collector.enter("a", 0), Ok(()));
        assert_eq!(collector.enter("b", 0), Err(LimitError::TooManyEntries));
        let mut collector = Collector { bytes: TOTAL_BYTES_MAX, ..Collector::default() };
        assert_eq!(collector.add(path(), Content::Read(vec![0]), Standing::Own), Err(LimitError::TooManyBytes));
    }

    #[test]
    fn lists_a_few_and_counts_the_rest() {
        let paths = |count: usize| (0..count).map(|index| format!("{index}.yaml")).collect::<Vec<_>>();
        assert_eq!(listed(paths(2)), "0.yaml, 1.yaml");
        assert_eq!(listed(paths(7)), "0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml and 2 more");
    }
}
