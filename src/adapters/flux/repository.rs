//! A source of Flux as a repository of definitions: those in one folder of its artifact.

#![expect(clippy::disallowed_methods, reason = "an archive is unpacked beside what else the thread does")]

use crate::api::source::SourceFile;
use crate::core::plan::Note;
use crate::ports::{PollsOnAnyThread, PortError, PortErrorKind, RevisionContent};

use super::{Downloaded, FluxSource};

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The files of one folder of an archive, and what was left out of it.
pub type ReadArchive = fn(&[u8], &str) -> Result<(Vec<SourceFile>, Vec<Note>), Cause>;

/// Tells the operator something that is no error.
pub type Say = fn(&str);

pub struct FluxRepository {
    source: FluxSource,
    /// Of the artifact; empty: all of it.
    folder: String,
    read_archive: ReadArchive,
    say: Say,
    /// Whether it was said last that the source is suspended.
    said_suspended: bool,
}

impl FluxRepository {
    pub fn new(source: FluxSource, folder: &str, read_archive: ReadArchive, say: Say) -> Self {
        let folder = folder.trim_matches('/').to_owned();
        Self { source, folder, read_archive, say, said_suspended: false }
    }

    /// The artifact, if it is another one than was returned last.
    pub async fn next(&mut self) -> Result<Option<RevisionContent>, PortError> {
        let next = self.source.next().await;
        self.say_whether_suspended();
        let Some(downloaded) = next? else { return Ok(None) };
        let Downloaded { revision, title, archive, .. } = &downloaded;
        let (read, archive, folder) = (self.read_archive, archive.clone(), self.folder.clone());
        // Beside what else this thread does: it may have to unpack much.
        let read = tokio::task::spawn_blocking(move || read(&archive, &folder)).await;
        let source: Cause = match read {
            Ok(Ok((files, notes))) => {
                let title = format!("{} at {title}", self.source.name());
                let content = RevisionContent::without_history(revision.clone(), title, files, notes);
                self.source.took(&downloaded);
                return Ok(Some(content));
            }
            Ok(Err(error)) => error,
            Err(error) => Box::new(error),
        };
        self.source.failed();
        Err(self.source.error("has an artifact that can not be used", PortErrorKind::Permanent, Some(source)))
    }

    /// Somebody wanted it, so it is no error; but whoever waits for a commit looks here.
    fn say_whether_suspended(&mut self) {
        let is_suspended = self.source.is_suspended();
        if is_suspended != self.said_suspended {
            self.said_suspended = is_suspended;
            let name = self.source.name();
            (self.say)(&match is_suspended {
                true => format!("{name} is suspended: what it fetched last stays in use"),
                false => format!("{name} is no longer suspended"),
            });
        }
    }
}

impl PollsOnAnyThread for FluxRepository {
    async fn look(&mut self) -> Result<Option<RevisionContent>, PortError> {
        self.next().await
    }

    async fn wait(&mut self) {
        self.source.changed().await;
    }
}
