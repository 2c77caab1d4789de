//! A revision comes: it is read and checked, and takes force or is refused. The last good one stays in force meanwhile.

pub mod class_conditions;
pub mod facts;
pub mod inputs;
pub mod inventory;
mod kinds;
mod of_others;
pub mod statuses;
mod unsigned;
mod values;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_pool::NodePool;
use crate::api::settings::Settings;
use crate::controller::Controller;
use crate::controller::annotations::of_definitions;
use crate::controller::events::Event;
use crate::controller::observed::others::is_disowned;
use crate::controller::pace::RETRY;
use crate::controller::set_aside::{Left, SetAside};
use crate::core::plan::{Note, NoteCode, Plan, Revision};
use crate::core::snapshot::Snapshot;
use crate::definitions::{Definitions, Masks};
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, Repository, RevisionContent, chain};
use crate::render::diagnostics::{self, LintReport};
use crate::render::plan::fenced;
use crate::render::terminal::clean_lines;

use of_others::OfOthers;

/// How often it is said of a repository that it can not be read: what is in force goes on, but nobody's changes come.
const UNREACHABLE_SAID_AGAIN: SignedDuration = SignedDuration::from_hours(12);

#[derive(Debug, Default)]
pub struct Revisions {
    pub in_force: Option<InForce>,
    pub received: Option<Revision>,
    trouble: Option<Unreachable>,
    /// Who wrote revisions that came and were not used: what they wrote is in the next one as well.
    authors_before: Vec<String>,
    /// One that came when the cluster could not be looked at.
    unread: Option<RevisionContent>,
    /// One that came last and that somebody else should have signed: the operator may allow more people meanwhile.
    unsigned: Option<RevisionContent>,
    /// Objects that are to be pruned, by kind and name, each of which was said.
    pub prunes_said: Vec<(&'static str, String)>,
    /// Why only another process can use the first revision that came.
    pub begins_anew: Option<String>,
}

/// A repository that can not be read.
#[derive(Debug)]
struct Unreachable {
    /// Since the first failure after the last answer.
    since: Timestamp,
    /// What was said about it, and when.
    said: String,
    said_at: Timestamp,
}

#[derive(Debug)]
pub struct InForce {
    pub revision: Revision,
    /// Without what is set aside.
    pub definitions: Definitions,
    /// What another installation has in the cluster.
    pub of_others: OfOthers,
    /// What of the commit was left out.
    pub notes: Vec<Note>,
    /// When it was committed, as it says.
    pub committed_at: Option<Timestamp>,
    /// Who wrote what is new in it.
    pub authors: Vec<String>,
    /// Whether its plan was shown.
    pub shown: bool,
    /// Whether its definitions are in the cluster.
    pub applied: bool,
    /// Why they are not: one of them is refused, until somebody changes it or what refuses it.
    pub refused: Option<String>,
}

impl InForce {
    /// The definitions could not be applied. What stays as it is while nobody changes anything is said once: the pools say it from then on.
    /// Gives what is left to be said.
    pub fn refuse(&mut self, mut left: Left, say: impl FnOnce(String)) -> Left {
        if let Some(refusal) = left.refused.extract_if(.., |error| error.is_refused()).next() {
            left.untried = true;
            let text = chain(&refusal);
            if self.refused.as_ref() != Some(&text) {
                self.refused = Some(text.clone());
                say(text);
            }
        }
        left
    }

    /// The pools that the cluster has and that are ours: each as it is defined, and as it is applied.
    pub fn node_pools<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = (&'a NodePool, &'a NodePool)> {
        let applied = snapshot.node_pools.iter().filter(|pool| !is_disowned(&pool.metadata));
        applied.filter_map(|applied| {
            let name = &applied.metadata.name;
            let defined = self.definitions.node_pools.iter().find(|it| it.value.metadata.name == *name)?;
            Some((&defined.value, applied))
        })
    }

    /// Whether a pool and its class are in the cluster as they are defined.
    pub fn stands(&self, node_pool: &str, snapshot: &Snapshot) -> bool {
        let is_it = |pool: &NodePool| pool.metadata.name.as_deref() == Some(node_pool);
        let Some((defined, applied)) = self.node_pools(snapshot).find(|(defined, _)| is_it(defined)) else {
            return false;
        };
        let class = Some(&defined.spec.template.spec.node_class_ref.name);
        let mut classes = self.definitions.node_classes.iter().map(|it| &it.value);
        let of_pool = classes.find(|it| it.metadata.name.as_ref() == class);
        let is_applied = |defined: &EC2NodeClass| {
            let mut applied = snapshot.node_classes.iter().filter(|it| it.metadata.name.as_ref() == class);
            applied.any(|it| it.spec == defined.spec)
        };
        !of_definitions::is_other(defined, applied) && of_pool.is_none_or(is_applied)
    }

    /// The class of a pool as a plan has it: that of the definitions, or else the cluster's.
    pub fn class_of<'a>(&'a self, pool: &NodePool, snapshot: &'a Snapshot) -> Option<&'a EC2NodeClass> {
        let name = Some(&pool.spec.template.spec.node_class_ref.name);
        let defined = self.definitions.node_classes.iter().map(|it| &it.value);
        defined.chain(snapshot.node_classes.iter()).find(|class| class.metadata.name.as_ref() == name)
    }
}

impl Revisions {
    /// Those that are set aside as well: claims of them are looked after.
    pub fn node_pools(&self) -> Vec<NodePool> {
        let definitions = self.in_force.iter().flat_map(|it| &it.definitions.node_pools).map(|it| &it.value);
        let aside = self.in_force.iter().flat_map(|it| it.of_others.node_pools());
        definitions.chain(aside).cloned().collect()
    }

    pub fn defined_classes(&self) -> impl Iterator<Item = &EC2NodeClass> {
        let definitions = self.in_force.iter().flat_map(|it| &it.definitions.node_classes);
        definitions.map(|definition| &definition.value)
    }

    /// The classes as they are defined, with what is known of them: the status that the applied one has, as long as it is about the same.
    pub fn node_classes(&self, snapshot: &Snapshot) -> Vec<EC2NodeClass> {
        let with_status = |class: &EC2NodeClass| {
            let mut applied = snapshot.node_classes.iter().filter(|it| it.metadata.name == class.metadata.name);
            let status = applied.find(|it| it.spec == class.spec).and_then(|it| it.status.clone());
            EC2NodeClass { status: status.or_else(|| class.status.clone()), ..class.clone() }
        };
        self.defined_classes().map(with_status).collect()
    }

    /// Those in force.
    pub fn definitions(&self) -> Option<&Definitions> {
        self.in_force.as_ref().map(|in_force| &in_force.definitions)
    }

    pub fn settings(&self) -> Option<&Settings> {
        self.in_force.as_ref().map(|in_force| &in_force.definitions.settings)
    }

    /// What brings objects from elsewhere now as before is no reason to keep what is taken out now.
    fn followed_by(&self, definitions: &mut Definitions, snapshot: &Snapshot) {
        if let Some(in_force) = &self.in_force {
            let hid_something = !in_force.definitions.out_of_sight(snapshot, None).is_empty();
            definitions.come_after(&in_force.definitions, hid_something);
        }
    }

    /// What a plan is not made of, while nobody knows whether there is something newer.
    pub fn note_of_trouble(&self) -> Option<Note> {
        let Unreachable { since, said, .. } = self.trouble.as_ref()?;
        let text = format!(
            "the repository can not be read since {since}, and whether there is a newer revision is not known: {said}"
        );
        Some(Note::new(NoteCode::RepositoryUnreachable, text))
    }

    /// What hides in a plan what nobody is shown, and the hashes that cover it.
    pub fn masks_of(&self, plan: &Plan) -> Masks {
        let Some(in_force) = &self.in_force else { return Masks::default() };
        in_force.definitions.masks.with_hashes_of(plan, &in_force.definitions.hidden_pools())
    }

    /// The variables of the NodePools for which a plan launches something, and whose values are those of this process alone.
    pub fn hidden_variables(&self, plan: &Plan) -> BTreeSet<&str> {
        let Some(in_force) = &self.in_force else { return BTreeSet::new() };
        let pools = in_force.definitions.hidden_pools();
        let launched = plan.steps.iter().filter(|step| step.launch.is_some());
        let variables = launched.filter_map(|step| pools.get(step.node_pool.as_str()).copied());
        variables.flatten().map(String::as_str).collect()
    }

    pub fn masks(&self) -> Masks {
        self.in_force.as_ref().map(|in_force| in_force.definitions.masks.clone()).unwrap_or_default()
    }

    /// Adds who wrote revisions since the one in force.
    fn authors_with(&mut self, authors: Vec<String>) -> Vec<String> {
        self.authors_before.extend(authors);
        self.authors_before.sort();
        self.authors_before.dedup();
        self.authors_before.clone()
    }

    fn revision(&self) -> Option<Revision> {
        self.in_force.as_ref().map(|in_force| in_force.revision.clone())
    }
}

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Asks the repository; trouble is said once and does not stop the rest.
    pub(in crate::controller) async fn poll_repository(&mut self, now: Timestamp) -> Result<(), PortError> {
        if let Some(content) = self.revisions.unread.take() {
            self.receive(content, now).await?;
        }
        match self.ports.repository.poll().await {
            Ok(content) => {
                if self.revisions.trouble.take().is_some() {
                    self.journal.say(now, &Event::RepositoryBack);
                }
                match content {
                    Some(content) => self.receive(content, now).await,
                    None => self.judge_again(now).await,
                }
            }
            Err(error) => {
                let said = chain(&error);
                let is_known = |before: &Unreachable| {
                    before.said == said && now.duration_since(before.said_at).abs() < UNREACHABLE_SAID_AGAIN
                };
                let before = self.revisions.trouble.as_ref();
                if !before.is_some_and(is_known) {
                    self.journal.say(now, &Event::RepositoryUnreachable { error: said.clone() });
                    let since = before.map_or(now, |before| before.since);
                    self.revisions.trouble = Some(Unreachable { since, said, said_at: now });
                }
                Ok(())
            }
        }
    }

    async fn receive(&mut self, content: RevisionContent, now: Timestamp) -> Result<(), PortError> {
        // Before anything is said: what fails is tried again, and no revision gets lost.
        let snapshot = match self.eyes().look(&self.ports.cluster).await {
            Ok((snapshot, _)) => snapshot,
            Err(error) => {
                self.revisions.unread = Some(content);
                self.repository_due = true;
                return Err(error);
            }
        };
        let Some(unsigned) = self.unsigned(&content.revision, now).await else {
            self.revisions.unread = Some(content);
            return Ok(());
        };
        self.revisions.unsigned = None;
        if self.revisions.revision().is_some_and(|in_force| in_force.id == content.revision.id) {
            // Back to what is in force: what came between was not used.
            self.revisions.received = Some(content.revision);
            self.revisions.authors_before.clear();
            return Ok(());
        }
        let RevisionContent { revision, title, rewritten, notes, .. } = content.clone();
        self.journal.say(now, &Event::RevisionFound { revision, title, rewritten, notes });
        if content.is_older && !self.options.allows_older_revisions {
            return self.hold_older(content.revision, now).await;
        }
        if !unsigned.is_empty() {
            return self.hold_unsigned(content, unsigned, inventory::managed_pools(&snapshot), now).await;
        }
        let RevisionContent { revision, files, committed_at, authors, mut notes, .. } = content;
        let authors = self.revisions.authors_with(authors);
        let mut definitions = (self.options.read)(&files);
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
            let markdown = diagnostics::markdown_of_refused(&report, definitions.unchecked());
            let in_force = self.revisions.revision();
            self.journal.say(now, &Event::RevisionRefused { revision: revision.clone(), in_force });
            return self.ports.forge.post_failure(&revision, "not used: it has errors", &markdown).await;
        }
        if self.is_held(&revision, &definitions, &snapshot, now).await? {
            return Ok(());
        }
        self.revisions.followed_by(&mut definitions, &snapshot);
        notes.extend(definitions.notes.iter().cloned());
        notes.extend(without_confirmations(&mut definitions));
        self.revisions.authors_before.clear();
        let (shown, applied) = (false, false);
        let of_others = OfOthers::default();
        let in_force =
            InForce { revision, definitions, of_others, notes, committed_at, authors, shown, applied, refused: None };
        self.revisions.in_force = Some(in_force);
        self.supersede_for_revision(now).await;
        // Another region or class may need another catalog.
        self.catalog = None;
        self.plans.due_at = Some(now);
        // What failed with the revision before says nothing of this one.
        self.plans.again_in = RETRY;
        self.set_aside = SetAside::default();
        Ok(())
    }

    /// Whether a revision without errors is held all the same, for what it would do to this cluster.
    async fn is_held(
        &mut self,
        revision: &Revision,
        definitions: &Definitions,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        if let Some(because) = of_another_cluster(&definitions.settings, self.options.cluster_name.as_deref()) {
            self.hold_of_another_cluster(revision.clone(), because, now).await?;
            return Ok(true);
        }
        let of_another = of_another_region(&definitions.settings, self.options.region.as_deref());
        self.revisions.begins_anew = of_another.clone().filter(|_| self.revisions.in_force.is_none());
        if let Some(because) = of_another {
            self.hold_of_another_cluster(revision.clone(), because, now).await?;
            return Ok(true);
        }
        let applied = inventory::managed_pools(snapshot);
        if definitions.node_pools.is_empty() && !applied.is_empty() {
            self.hold(revision.clone(), applied, now).await?;
            return Ok(true);
        }
        let lost = values::lost(definitions, snapshot);
        if !lost.is_empty() {
            self.hold_without_values(revision.clone(), &lost, now).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Settings that were copied, or a branch of another cluster: what it defines would take the place of all that this one has.
    async fn hold_of_another_cluster(
        &mut self,
        revision: Revision,
        because: String,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let in_force = self.revisions.revision();
        let text = fenced("", &clean_lines(&because));
        self.journal.say(now, &Event::OfAnotherCluster { revision: revision.clone(), in_force, because });
        self.ports.forge.post_failure(&revision, "not used: it is for another cluster", &text).await
    }

    /// A server that went back, a mirror that fell behind, or somebody who undoes what others reviewed.
    async fn hold_older(&mut self, revision: Revision, now: Timestamp) -> Result<(), PortError> {
        let in_force = self.revisions.revision();
        self.revisions.received = Some(revision.clone());
        let is_one_in_force = in_force.is_some();
        self.journal.say(now, &Event::OlderRevisionHeld { revision: revision.clone(), in_force });
        let instead =
            if is_one_in_force { "the one before stays in force" } else { "none is in force until a newer one comes" };
        let text = format!(
            "This revision is in the history of the one that was used last, or older than it. It is not used, and {instead}. To go back, \
             revert the commits that came since with a new one, or start with --allow-older-revision.\n"
        );
        self.ports.forge.post_failure(&revision, "not used: it is older than the one that was used last", &text).await
    }

    /// Settings that are lost take the values of variables with them, and no class works with their names.
    async fn hold_without_values(
        &mut self,
        revision: Revision,
        lost: &[values::Lost],
        now: Timestamp,
    ) -> Result<(), PortError> {
        let in_force = self.revisions.revision();
        self.journal.say(now, &Event::RevisionRefused { revision: revision.clone(), in_force });
        let objects: Vec<String> = lost.iter().map(ToString::to_string).collect();
        let text = format!(
            "Variables have values in the cluster and none in this revision: {}. It is not used, and nothing is applied. Give them in \
             cutlist.yaml, or with --variable.\n",
            objects.join("; ")
        );
        self.ports.forge.post_failure(&revision, "not used: variables have no value any more", &text).await
    }

    /// A commit without a single pool is more often an accident than a wish.
    async fn hold(&mut self, revision: Revision, node_pools: Vec<String>, now: Timestamp) -> Result<(), PortError> {
        let names = node_pools.join(", ");
        let in_force = self.revisions.revision();
        let text = format!(
            "This revision removes every NodePool ({names}). It is held: nothing is pruned, no node is removed, and the revision before it \
             stays in force. To let them go, delete them (`kubectl delete nodepools {}`), and commit once more.\n",
            node_pools.join(" ")
        );
        self.journal.say(now, &Event::RemovalHeld { revision: revision.clone(), in_force, node_pools });
        self.ports.forge.post_failure(&revision, "not used: it would remove every NodePool", &text).await
    }
}

/// Why settings are not for the region in which nodes are launched, and what to do.
fn of_another_region(settings: &Settings, region: Option<&str>) -> Option<String> {
    let (named, region) = (settings.region.as_deref()?, region?);
    (named != region).then(|| {
        format!(
            "spec.region of cutlist.yaml is {named}, and this process launches in {region}, which was found out when it began. To use the \
             revision here, write region: {region}, or leave it out; if the cluster is in {named}, start Cutlist again"
        )
    })
}

/// Why settings are not for this cluster, and what to do; `None` where they may be: they name none, or nobody says what this one is called.
pub fn of_another_cluster(settings: &Settings, cluster: Option<&str>) -> Option<String> {
    let (named, cluster) = (&settings.cluster_name, cluster?);
    let names_another = named != cluster && *named != Settings::default().cluster_name;
    names_another.then(|| {
        format!(
            "spec.clusterName of cutlist.yaml is {named}, and the cluster is {cluster}, as --cluster-name says. To use the revision here, \
             write clusterName: {cluster}, or leave it out"
        )
    })
}

/// Takes off what only people who look at the cluster may say of a pool: who commits could confirm a removal before it is asked about.
fn without_confirmations(definitions: &mut Definitions) -> Option<Note> {
    let mut pools = Vec::new();
    for pool in &mut definitions.node_pools {
        let annotations = pool.value.metadata.annotations.as_mut();
        if annotations.is_some_and(|annotations| annotations.remove(keys::REMOVAL_CONFIRMED).is_some()) {
            pools.extend(pool.value.metadata.name.clone());
        }
    }
    (!pools.is_empty()).then(|| {
        Note::new(
            NoteCode::RemovalConfirmedInDefinitions,
            format!(
                "the annotation {} counts on NodePools of the cluster, not in definitions: {}",
                keys::REMOVAL_CONFIRMED,
                pools.join(", ")
            ),
        )
    })
}
