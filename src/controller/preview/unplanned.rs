//! What a change does that is in no step of the plan: definitions that no plan is made with, and nodes of which nobody here can know whether
//! they drift; pools that go while their nodes stay, or go anyway; and clusters that are not in the snapshot. That no
//! node changes says nothing of them.

use crate::api::ec2_node_class::EC2NodeClass;
use crate::core::plan::{NodeCounts, Note, NoteCode, Plan};
use crate::core::preview::{Effect, held_back};
use crate::core::snapshot::Snapshot;
use crate::definitions::changes::{Change, ChangeKind};
use crate::definitions::{Definitions, Masks, OpenDefinition};

/// Codes of notes that say of the object that they are about that no plan is made with it.
const LEFT_OUT: [NoteCode; 6] = [
    NoteCode::LeftOut,
    NoteCode::NodePoolOfAutoMode,
    NoteCode::NodePoolOfAnotherProvider,
    NoteCode::NodeClassMissing,
    NoteCode::NodeClassNotReady,
    NoteCode::FeatureGateOff,
];

/// A change, with the plans of both sides.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    pub changes: &'a [Change],
    pub plan: &'a Plan,
    /// `None`: it can not be used, and nothing is compared.
    pub base: Option<&'a Plan>,
    pub snapshot: &'a Snapshot,
    /// Of limits that nodes have reached by the change alone (`limits.rs`).
    pub limits: &'a [String],
}

impl Planned<'_> {
    /// `NodePool default is left out: there is no value for cpu_limit in spec.limits.cpu`. `open`: definitions with variables, as they were
    /// settled beside the cluster.
    pub fn sentence(&self, open: &[OpenDefinition], hidden: &Masks) -> Option<String> {
        let of_variables = |change: &Change| {
            let settled = open.iter().find(|open| open.kind == change.kind && open.name == change.name)?;
            settled.unplanned.as_deref().map(|text| hidden.text(text))
        };
        let of_changes = self.changes.iter().filter_map(|change| {
            note_of(change, self.plan).map(|note| note.text.clone()).or_else(|| of_variables(change))
        });
        let of_others = self.new_notes(&LEFT_OUT).into_iter().filter(|note| !self.is_of_a_change(note));
        let of_others = of_others.map(|note| note.text.clone());
        let of_limits = self.limits.iter().map(|text| hidden.text(text));
        let mut texts = of_changes.chain(of_others).chain(of_limits).chain(self.may_drift());
        let first = texts.next()?;
        Some(match texts.count() {
            0 => first,
            more => format!("{first}, and {more} more"),
        })
    }

    /// Whether nodes may go, or can not come any more, by what no step shows.
    pub fn makes_a_difference(&self) -> bool {
        !self.new_notes(&[NoteCode::NodeClassMissing]).is_empty()
            || !self.may_drift().is_empty()
            || !self.limits.is_empty()
            || self.waits_for_approval().is_some()
            || self.pools_removed().is_some()
    }

    /// Why nothing of what the plans say is known. `base`: the definitions that are in force.
    pub fn not_known(&self, base: &Definitions) -> Option<String> {
        let Snapshot { nodes, node_claims, node_pools, pods, .. } = self.snapshot;
        if nodes.is_empty() && node_claims.is_empty() && pods.is_empty() {
            return Some("there are neither nodes nor pods in the snapshot: is it empty?".to_owned());
        }
        let of = |plan: &'_ Plan| plan.notes.iter().find(|note| note.code == NoteCode::AnotherCluster).cloned();
        let note = of(self.plan).filter(|_| self.base.is_none_or(|base| of(base).is_some()))?;
        let is_there = |name: &str| node_pools.iter().any(|pool| pool.metadata.name.as_deref() == Some(name));
        let mut of_base = base.pools_in_files().peekable();
        // Whoever brings the first pools to a cluster brings them beside those of others.
        let is_another = of_base.peek().is_some() && !of_base.any(|(name, _)| is_there(name));
        is_another.then_some(note.text)
    }

    /// `the removal of NodePool a waits for an approval`, where it would not without the change.
    pub fn waits_for_approval(&self) -> Option<String> {
        let of_base = self.base.iter().flat_map(|base| &base.notes);
        let before: Vec<&str> = of_base.filter_map(pool_to_confirm).collect();
        let waiting = self.plan.notes.iter().filter_map(pool_to_confirm).filter(|pool| !before.contains(pool));
        let waiting: Vec<&str> = waiting.collect();
        match waiting.as_slice() {
            [] => None,
            [pool] => Some(format!("the removal of NodePool {pool} waits for an approval")),
            several => Some(format!("the removal of {} NodePools waits for an approval", several.len())),
        }
    }

    /// `NodePool a is removed`, where the steps do not tell.
    pub fn pools_removed(&self) -> Option<String> {
        if Effect::of_change(self.plan).nodes != NodeCounts::default() {
            return None;
        }
        let removed = self.changes.iter().filter(|it| it.kind == "NodePool" && it.what == ChangeKind::Removed);
        let removed: Vec<&Change> = removed.filter(|change| !is_out_of_sight(change, self.plan)).collect();
        match removed.as_slice() {
            [] => None,
            [pool] => Some(format!("NodePool {} is removed", pool.name)),
            several => Some(format!("{} NodePools are removed", several.len())),
        }
    }

    /// Notes that the base has not; none where nothing is compared.
    fn new_notes(&self, codes: &[NoteCode]) -> Vec<&Note> {
        let Some(base) = self.base else { return Vec::new() };
        let is_new = |note: &&Note| codes.contains(&note.code) && note.about.is_some() && !base.notes.contains(note);
        self.plan.notes.iter().filter(is_new).collect()
    }

    fn is_of_a_change(&self, note: &Note) -> bool {
        self.changes.iter().any(|change| is_about(note, change))
    }

    fn may_drift(&self) -> Vec<String> {
        let foreseen_by_nobody = self.new_notes(&[NoteCode::DriftNotForeseen]).into_iter().filter_map(|note| {
            let name = &note.about.as_ref()?.name;
            Some(format!("nodes of EC2NodeClass {name} may drift once this is applied, which is not in this plan"))
        });
        foreseen_by_nobody.chain(self.classes_of_nobody()).collect()
    }

    /// Classes that change, and that the snapshot does not have: what their nodes were launched with is not known then. A node that goes, or
    /// that stays for a reason, shows that it was known.
    fn classes_of_nobody(&self) -> Vec<String> {
        let takes_nodes = Effect::of_change(self.plan).nodes != NodeCounts::default();
        if takes_nodes || !held_back(self.plan, self.base).caused.is_empty() {
            return Vec::new();
        }
        let mut sentences = Vec::new();
        for change in self.changes.iter().filter(|it| it.kind == "EC2NodeClass" && it.what == ChangeKind::Changed) {
            let name = &change.name;
            let is_it = |class: &EC2NodeClass| class.metadata.name.as_ref() == Some(name);
            let is_named_only =
                !change.fields.is_empty() && change.fields.iter().all(|it| !it.path.starts_with("spec."));
            if is_named_only || self.snapshot.node_classes.iter().any(is_it) {
                continue;
            }
            let claims = self.snapshot.node_claims.iter();
            let which = match claims.filter(|claim| claim.spec.node_class_ref.name == *name).count() {
                0 => continue,
                1 => "its node drifts".to_owned(),
                nodes => format!("any of its {nodes} nodes drifts"),
            };
            sentences.push(format!("the snapshot has no EC2NodeClass {name}, so whether {which} is not known"));
        }
        sentences
    }
}

fn pool_to_confirm(note: &Note) -> Option<&str> {
    let about = note.about.as_ref().filter(|_| note.code == NoteCode::ConfirmationNeeded)?;
    Some(&about.name)
}

/// Whether it is in no file, and is not taken for removed.
pub fn is_out_of_sight(change: &Change, plan: &Plan) -> bool {
    change.what == ChangeKind::Removed && note_of(change, plan).is_some_and(|note| note.code == NoteCode::LeftOut)
}

fn note_of<'p>(change: &Change, plan: &'p Plan) -> Option<&'p Note> {
    plan.notes.iter().find(|note| is_about(note, change) && LEFT_OUT.contains(&note.code))
}

fn is_about(note: &Note, change: &Change) -> bool {
    note.about.as_ref().is_some_and(|about| about.kind == change.kind && about.name == change.name)
}
