//! A revision comes: it is read and checked, and takes force or is refused. The last good one stays in force meanwhile.

use jiff::Timestamp;

use crate::api::node_pool::NodePool;
use crate::api::settings::Settings;
use crate::core::plan::{Note, Revision};
use crate::definitions::{Definitions, Masks, OpenDefinition};
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, Repository, RevisionContent, chain};
use crate::render::diagnostics::{self, LintReport};
use crate::render::plan::fenced;
use crate::render::terminal::clean_lines;

use super::events::Event;
use super::{Controller, RETRY, inventory};

#[derive(Debug, Default)]
pub struct Revisions {
    pub in_force: Option<InForce>,
    pub received: Option<Revision>,
    /// What was said about a repository that can not be read.
    trouble: Option<String>,
}

#[derive(Debug)]
pub struct InForce {
    pub revision: Revision,
    pub definitions: Definitions,
    /// What of the commit was left out.
    pub notes: Vec<Note>,
    /// Whether its plan was shown.
    pub shown: bool,
    /// Whether its definitions are in the cluster.
    pub applied: bool,
}

impl Revisions {
    pub fn node_pools(&self) -> Vec<NodePool> {
        let definitions = self.in_force.iter().flat_map(|it| &it.definitions.node_pools);
        definitions.map(|definition| definition.value.clone()).collect()
    }

    pub fn node_class_names(&self) -> Vec<String> {
        let definitions = self.in_force.iter().flat_map(|it| &it.definitions.node_classes);
        definitions.filter_map(|definition| definition.value.metadata.name.clone()).collect()
    }

    pub fn settings(&self) -> Option<&Settings> {
        self.in_force.as_ref().map(|in_force| &in_force.definitions.settings)
    }

    pub fn masks(&self) -> Masks {
        self.in_force.as_ref().map(|in_force| in_force.definitions.masks.clone()).unwrap_or_default()
    }

    fn revision(&self) -> Option<Revision> {
        self.in_force.as_ref().map(|in_force| in_force.revision.clone())
    }
}

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Asks the repository; trouble is said once and does not stop the rest.
    pub(super) async fn poll_repository(&mut self, now: Timestamp) -> Result<(), PortError> {
        match self.ports.repository.poll().await {
            Ok(content) => {
                if self.revisions.trouble.take().is_some() {
                    self.journal.say(now, &Event::RepositoryBack);
                }
                match content {
                    Some(content) => self.receive(content, now).await,
                    None => Ok(()),
                }
            }
            Err(error) => {
                let error = chain(&error);
                if self.revisions.trouble.as_ref() != Some(&error) {
                    self.journal.say(now, &Event::RepositoryUnreachable { error: error.clone() });
                    self.revisions.trouble = Some(error);
                }
                Ok(())
            }
        }
    }

    async fn receive(&mut self, content: RevisionContent, now: Timestamp) -> Result<(), PortError> {
        let RevisionContent { revision, title, files, rewritten, mut notes } = content;
        self.journal
            .say(now, &Event::RevisionFound { revision: revision.clone(), title, rewritten, notes: notes.clone() });
        let definitions = (self.options.read)(&files);
        self.revisions.received = Some(revision.clone());
        let mut report = LintReport::new();
        report.add(&definitions, str::to_owned);
        let text_of = |path: &str| {
            let file = files.iter().find(|file| file.path == path)?;
            str::from_utf8(&file.content).ok()
        };
        let linted = Event::Linted {
            files: definitions.files_read,
            documents: definitions.documents_read,
            diagnostics: definitions.diagnostics.clone(),
            text: diagnostics::text(&report, text_of, true),
        };
        self.journal.say(now, &linted);
        if !definitions.revision_usable() {
            let mut text = diagnostics::text(&report, text_of, false);
            text.extend(definitions.unchecked().map(OpenDefinition::why_unusable));
            let in_force = self.revisions.revision();
            self.journal.say(now, &Event::RevisionRefused { revision: revision.clone(), in_force });
            return self.ports.forge.post_failure(&revision, &fenced("", &clean_lines(&text))).await;
        }
        if definitions.node_pools.is_empty() {
            let snapshot = self.ports.cluster.observe().await?;
            let node_pools = inventory::managed_pools(&snapshot);
            if !node_pools.is_empty() {
                return self.hold(revision, node_pools, now).await;
            }
        }
        notes.extend(definitions.notes.iter().cloned());
        self.revisions.in_force = Some(InForce { revision, definitions, notes, shown: false, applied: false });
        // Another region or class may need another catalog.
        self.catalog = None;
        self.plan_due_at = Some(now);
        // What failed with the revision before says nothing of this one.
        self.plan_again_in = RETRY;
        Ok(())
    }

    /// A commit without a single pool is more often an accident than a wish.
    async fn hold(&mut self, revision: Revision, node_pools: Vec<String>, now: Timestamp) -> Result<(), PortError> {
        let names = node_pools.join(", ");
        let in_force = self.revisions.revision();
        self.journal.say(now, &Event::RemovalHeld { revision: revision.clone(), in_force, node_pools });
        let text = format!(
            "This revision removes every NodePool ({names}). It is held for confirmation: nothing is pruned, no node is \
             removed, and the revision before it stays in force.\n"
        );
        self.ports.forge.post_failure(&revision, &text).await
    }
}
