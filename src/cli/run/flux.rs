//! `cutlist run --source flux`: the revision is the artifact of a source of Flux.

use anyhow::anyhow;

use crate::adapters::flux::{Downloaded, FluxSource};
use crate::adapters::git::{PollsOnAnyThread, read_archive};
use crate::adapters::kubernetes::Connection;
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::output;
use crate::ports::{PortError, PortErrorKind, RevisionContent};

use super::source::Follow;

/// A source, and the folder of its artifact that holds the definitions.
pub struct FluxRepository {
    source: FluxSource,
    folder: String,
    /// Whether it was said last that the source is suspended.
    said_suspended: bool,
}

/// Begins to follow what was named.
pub fn follow(arguments: &RunArguments, connection: &Connection) -> Result<Follow, Failure> {
    let Some(name) = arguments.controller.source_ref.clone() else {
        return Err(Failure::usage(anyhow!("--source flux needs the source of Flux that it takes"))
            .with_hint("add --source-ref KIND/NAME.NAMESPACE, such as GitRepository/nodes.flux-system"));
    };
    let source = FluxSource::follow(&connection.client, name).map_err(Failure::failed)?;
    let folder = arguments.sub_path.clone().unwrap_or_default();
    let folder = folder.trim_matches('/').to_owned();
    Ok(Follow::Flux(Box::new(FluxRepository { source, folder, said_suspended: false })))
}

/// What somebody can do about it.
pub fn hint(error: &PortError) -> &'static str {
    match error.kind {
        PortErrorKind::NotFound => "check --source-ref and --sub-path, and what `flux get sources all -A` says",
        PortErrorKind::Denied => "give it `get`, `list` and `watch` on the source: deploy/README.md, section Flux",
        _ => {
            "does a NetworkPolicy of Flux's namespace let Cutlist reach source-controller? deploy/README.md, section Flux"
        }
    }
}

impl FluxRepository {
    pub async fn next(&mut self) -> Result<Option<RevisionContent>, PortError> {
        let next = self.source.next().await;
        self.say_whether_suspended();
        let Some(downloaded) = next? else { return Ok(None) };
        let Downloaded { revision, title, archive, .. } = &downloaded;
        let (archive, folder) = (archive.clone(), self.folder.clone());
        // Beside what else this thread does: it may have to unpack much.
        let read = tokio::task::spawn_blocking(move || read_archive(&archive, &folder)).await;
        let source: Box<dyn std::error::Error + Send + Sync> = match read {
            Ok(Ok((files, notes))) => {
                let title = format!("{} at {title}", self.source.name());
                let content = RevisionContent::without_history(revision.clone(), title, files, notes);
                self.source.took(&downloaded);
                return Ok(Some(content));
            }
            Ok(Err(error)) => Box::new(error),
            Err(error) => Box::new(error),
        };
        self.source.failed();
        Err(self.source.error("has an artifact that can not be used", PortErrorKind::Permanent, Some(source)))
    }
}

impl FluxRepository {
    /// Somebody wanted it, so it is no error; but whoever waits for a commit looks here.
    fn say_whether_suspended(&mut self) {
        let is_suspended = self.source.is_suspended();
        if is_suspended != self.said_suspended {
            self.said_suspended = is_suspended;
            let name = self.source.name();
            output::say(&match is_suspended {
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
