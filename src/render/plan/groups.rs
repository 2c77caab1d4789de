//! The steps of a plan as a reader takes them in: a replacement is one thing, and many alike are one line.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::model::{HourlyPrice, Resources};
use crate::core::plan::{DefinitionPlace, Reason, Step, StepKind, blocks};

/// More groups than this are folded together where they are alike.
const GROUPS_MAX: usize = 40;

/// What happens to the nodes of a group, in the words of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Remove,
    Replace,
    Create,
    Adopt,
    Hold,
}

/// How much steps must have in common to be folded: each level asks for less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folding {
    Nothing,
    SameTypeAndZone,
    SameType,
    SamePool,
}

impl Folding {
    const ALL: [Self; 4] = [Self::Nothing, Self::SameTypeAndZone, Self::SameType, Self::SamePool];
}

/// One replacement, one other step, or several of them that are alike.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    pub action: Action,
    /// How many replacements, or other steps, are in the group.
    pub members: usize,
    pub steps: Vec<&'a Step>,
}

impl<'a> Group<'a> {
    /// More than one where a node of one pool takes the place of a node of another.
    pub fn node_pools(&self) -> BTreeSet<&'a str> {
        self.steps.iter().map(|step| step.node_pool.as_str()).collect()
    }

    pub fn of(&self, kind: StepKind) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().copied().filter(move |step| step.kind == kind)
    }

    /// What the group adds to the price of the fleet.
    pub fn change(&self) -> HourlyPrice {
        let created: HourlyPrice = self.of(StepKind::Create).map(|step| step.price_per_hour).sum();
        let removed: HourlyPrice = self.of(StepKind::Remove).map(|step| step.price_per_hour).sum();
        created - removed
    }

    /// The reasons that occur, most frequent first. In a replacement only removals count, since creations follow from
    /// them.
    pub fn reasons(&self) -> Vec<(&'a Reason, usize)> {
        let decides = |step: &&Step| self.action != Action::Replace || step.kind == StepKind::Remove;
        let mut counts: Vec<(&Reason, usize)> = Vec::new();
        for step in self.steps.iter().copied().filter(decides) {
            match counts.iter_mut().find(|(reason, _)| **reason == step.reason) {
                Some((_, count)) => *count += 1,
                None => counts.push((&step.reason, 1)),
            }
        }
        counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(right.0)));
        counts
    }

    /// Where the definition sets what a reason of the group is about.
    pub fn definition_of(&self, reason: &Reason) -> Option<&'a DefinitionPlace> {
        let of_reason = self.steps.iter().copied().filter(|step| step.reason == *reason);
        of_reason.filter_map(|step| step.definition.as_ref()).next()
    }

    fn key(&self, folding: Folding) -> (Action, String) {
        let mut parts: Vec<String> = self
            .steps
            .iter()
            .map(|step| {
                let what = match folding {
                    Folding::Nothing => format!("{}\n{:?}", step.node_claim, step.node),
                    Folding::SameTypeAndZone => format!("{}\n{}", step.instance_type, step.zone),
                    Folding::SameType => step.instance_type.clone(),
                    Folding::SamePool => String::new(),
                };
                format!("{:?}\n{}\n{}\n{:?}\n{what}", step.kind, step.node_pool, step.capacity_type, step.reason.code)
            })
            .collect();
        parts.sort();
        if folding == Folding::SamePool {
            parts.dedup();
        }
        (self.action, parts.join("\n\n"))
    }
}

/// Groups in the order of their moves, folded only as far as needed to stay readable; and how far that was.
pub fn groups<'a>(steps: impl IntoIterator<Item = &'a Step>) -> (Vec<Group<'a>>, Folding) {
    let groups = unfolded(steps);
    for folding in Folding::ALL {
        let folded = fold(&groups, folding);
        if folded.len() <= GROUPS_MAX || folding == Folding::SamePool {
            return (folded, folding);
        }
    }
    (groups, Folding::Nothing)
}

/// Groups folded at least as far as `folding`.
pub fn fold<'a>(groups: &[Group<'a>], folding: Folding) -> Vec<Group<'a>> {
    if folding == Folding::Nothing {
        return groups.to_vec();
    }
    let mut places: BTreeMap<(Action, String), usize> = BTreeMap::new();
    let mut folded: Vec<Group<'a>> = Vec::new();
    for group in groups {
        let place = *places.entry(group.key(folding)).or_insert(folded.len());
        match folded.get_mut(place) {
            Some(existing) => {
                existing.members += group.members;
                existing.steps.extend(&group.steps);
            }
            None => folded.push(group.clone()),
        }
    }
    folded
}

/// One group for each replacement and for each other step.
pub fn unfolded<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<Group<'a>> {
    let of_block = |steps: Vec<&'a Step>| Group { action: action(&steps), members: 1, steps };
    blocks(steps).into_iter().map(of_block).collect()
}

fn action(block: &[&Step]) -> Action {
    match block {
        [step] => match step.kind {
            StepKind::Create => Action::Create,
            StepKind::Remove => Action::Remove,
            StepKind::Adopt => Action::Adopt,
            StepKind::Hold => Action::Hold,
        },
        _ => Action::Replace,
    }
}

/// One line of a table of nodes: one step, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: StepKind,
    /// The claim's name, or `12 x default`.
    pub name: String,
    pub instance_type: String,
    pub capacity_type: String,
    pub zone: String,
    pub price: HourlyPrice,
    /// `wave 2`, `waves 1-3`; empty where the plan needs but one.
    pub wave: String,
}

/// The lines for the nodes of a group, creations before removals as they are carried out.
pub fn rows(group: &Group<'_>, folding: Folding) -> Vec<Row> {
    let mut kinds: Vec<StepKind> = group.steps.iter().map(|step| step.kind).collect();
    kinds.sort();
    kinds.dedup();
    let mut rows = Vec::new();
    for kind in kinds {
        let steps: Vec<&Step> = group.of(kind).collect();
        if group.members == 1 && steps.len() <= GROUPS_MAX {
            rows.extend(steps.into_iter().map(|step| row(&[step])));
            continue;
        }
        let mut alike: BTreeMap<(&str, &str, &str, &str), Vec<&Step>> = BTreeMap::new();
        for step in steps {
            let instance_type = if folding == Folding::SamePool { "" } else { step.instance_type.as_str() };
            let zone = if folding <= Folding::SameTypeAndZone { step.zone.as_str() } else { "" };
            alike.entry((&step.node_pool, instance_type, &step.capacity_type, zone)).or_default().push(step);
        }
        rows.extend(alike.into_values().map(|steps| row(&steps)));
    }
    rows
}

fn row(steps: &[&Step]) -> Row {
    let first = steps.first().copied();
    let pool = first.map_or("", |step| step.node_pool.as_str());
    let name = match steps {
        [step] => name(step).to_owned(),
        _ if pool.is_empty() => format!("{} x", steps.len()),
        _ => format!("{} x {pool}", steps.len()),
    };
    Row {
        kind: first.map_or(StepKind::Hold, |step| step.kind),
        name,
        instance_type: one_or_count(steps.iter().map(|step| step.instance_type.as_str()), "types"),
        capacity_type: one_or_count(steps.iter().map(|step| step.capacity_type.as_str()), "kinds"),
        zone: one_or_count(steps.iter().map(|step| step.zone.as_str()), "zones"),
        price: steps.iter().map(|step| step.price_per_hour).sum(),
        wave: waves(steps),
    }
}

fn waves(steps: &[&Step]) -> String {
    let waves = || steps.iter().filter_map(|step| step.wave);
    match (waves().min(), waves().max()) {
        (Some(first), Some(last)) if first == last => format!("wave {first}"),
        (Some(first), Some(last)) => format!("waves {first}-{last}"),
        _ => String::new(),
    }
}

/// What the node is called: by its claim, or by its own name where it has none.
pub fn name(step: &Step) -> &str {
    if step.node_claim.is_empty() { step.node.as_deref().unwrap_or_default() } else { &step.node_claim }
}

fn one_or_count<'a>(values: impl Iterator<Item = &'a str>, plural: &str) -> String {
    let distinct: BTreeSet<&str> = values.collect();
    match distinct.first() {
        Some(only) if distinct.len() == 1 => (*only).to_owned(),
        _ => format!("{} {plural}", distinct.len()),
    }
}

/// Over the nodes that the group creates: the sum of what is requested, and the sum of what they offer.
pub fn use_of_created(group: &Group<'_>) -> (Resources, Resources) {
    let (mut requested, mut allocatable) = (Resources::new(), Resources::new());
    for step in group.of(StepKind::Create) {
        requested.add(&step.requested);
        allocatable.add(&step.allocatable);
    }
    (requested, allocatable)
}
