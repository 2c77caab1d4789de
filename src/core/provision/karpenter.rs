//! The reference's packing: pod by pod, largest first; nodes that exist, then open nodes with the fewest pods, then a new
//! node of the first pool that takes it. Behaviour: reference, sections 3.4 and 3.5.

use std::collections::{BTreeMap, HashMap};

use crate::scheduler::class::VariantIndex;
use crate::scheduler::engine::Refused;
use crate::scheduler::offerings::OfferingSet;
use crate::scheduler::quota::{LimitScope, LimitedCapacity};
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::{ClassIndex, Demand, Engine, HostIndex};

use super::choice::most_capacity;
use super::open_order::OpenOrder;

/// Places pods class by class in the given order, again while that makes progress: an affinity may be satisfied only
/// by a pod that comes later. O(pods x (nodes + open nodes)) refusals at worst, each of constant cost.
pub fn pack(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand) -> Demand {
    pack_at(engine, order, demand, None)
}

/// The same for one level of preferences, or for all of them in turn.
pub fn pack_at(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand, level: Option<usize>) -> Demand {
    let queue: Vec<(ClassIndex, usize)> = order.iter().map(|class| (*class, usize::MAX)).collect();
    pack_queue(engine, &queue, demand, level, None)
}

/// Places pods as the reference does, from its queue, and on open nodes in its order.
pub fn pack_in_turn(engine: &mut Engine<'_, '_>, queue: &[(ClassIndex, usize)], demand: &Demand) -> Demand {
    let order = OpenOrder::new(engine);
    pack_queue(engine, queue, demand, None, Some(order))
}

/// Pods that find no place wait behind all others, until none has found one since. Of each class as many as are wanted.
fn pack_queue(
    engine: &mut Engine<'_, '_>,
    queue: &[(ClassIndex, usize)],
    demand: &Demand,
    level: Option<usize>,
    mut order: Option<OpenOrder>,
) -> Demand {
    let mut wanted = demand.clone();
    let take = |(class, count): &(ClassIndex, usize)| {
        let left = wanted.get_mut(class)?;
        let count = (*count).min(*left);
        *left -= count;
        Some((*class, count))
    };
    let mut queue: Vec<(ClassIndex, usize)> = queue.iter().filter_map(take).collect();
    let mut cursors: BTreeMap<ClassIndex, Cursor> = BTreeMap::new();
    let mut capacities = Capacities::default();
    let mut leftover = demand.clone();
    loop {
        let mut placed = 0;
        for (class, count) in &mut queue {
            let cursor = cursors.entry(*class).or_insert_with(|| Cursor::new(engine, *class));
            let before = *count;
            while *count > 0 && place_one(engine, *class, level, cursor, (order.as_mut(), &mut capacities)).is_some() {
                *count -= 1;
            }
            placed += before - *count;
            leftover.entry(*class).and_modify(|left| *left -= before - *count);
        }
        queue.retain(|(_, count)| *count > 0);
        if queue.is_empty() || placed == 0 {
            break;
        }
    }
    leftover.retain(|_, count| *count > 0);
    leftover
}

/// Places pods on nodes that were opened from `first` on, then on new ones, class by class in the given order: what the reference does with
/// pods that nodes which exist do not take. What is left.
pub fn pack_on_new(engine: &mut Engine<'_, '_>, first: HostIndex, order: &[ClassIndex], demand: &Demand) -> Demand {
    let mut capacities = Capacities::default();
    let mut leftover = demand.clone();
    loop {
        let before: usize = leftover.values().sum();
        for class in order {
            let Some(left) = leftover.get_mut(class) else { continue };
            while *left > 0 && place_on_one_of_new(engine, first, *class, &mut capacities) {
                *left -= 1;
            }
        }
        leftover.retain(|_, count| *count > 0);
        if leftover.is_empty() || leftover.values().sum::<usize>() == before {
            return leftover;
        }
    }
}

fn place_on_one_of_new(
    engine: &mut Engine<'_, '_>,
    first: HostIndex,
    class: ClassIndex,
    capacities: &mut Capacities,
) -> bool {
    let problem = engine.problem;
    for variant in problem.classes[class].variants.iter().copied() {
        if place_on_open(engine, first, class, variant).is_some() {
            return true;
        }
        match place_on_new(engine, class, variant, capacities) {
            NewNode::Opened(_) => return true,
            NewNode::WaitsForReservation => return false,
            NewNode::Refused => {}
        }
    }
    false
}

/// Where to look next among nodes that exist. Nodes only fill up, so for a class that topology does not touch a node
/// that had no room will have none.
pub struct Cursor {
    next: BTreeMap<VariantIndex, HostIndex>,
    advances: bool,
}

impl Cursor {
    pub fn new(engine: &Engine<'_, '_>, class: ClassIndex) -> Self {
        let pods = &engine.problem.classes[class];
        let unconstrained =
            pods.variants.iter().all(|variant| engine.problem.variants[*variant].constraints.is_empty());
        Self { next: BTreeMap::new(), advances: unconstrained }
    }
}

/// Gives one pod of the class a place, giving up its preferences one by one.
fn place_one(
    engine: &mut Engine<'_, '_>,
    class: ClassIndex,
    level: Option<usize>,
    cursor: &mut Cursor,
    (mut order, capacities): (Option<&mut OpenOrder>, &mut Capacities),
) -> Option<HostIndex> {
    let problem = engine.problem;
    let variants = problem.classes[class].variants.iter().enumerate();
    let wanted = variants.filter(|(position, _)| level.is_none_or(|level| level == *position));
    for variant in wanted.map(|(_, variant)| *variant) {
        let there = place_on_existing(engine, class, variant, cursor);
        if there.is_some() {
            return there;
        }
        let open = match &mut order {
            Some(order) => place_in_order(engine, order, class, variant),
            None => place_on_open(engine, HostIndex::default(), class, variant),
        };
        if open.is_some() {
            return open;
        }
        match place_on_new(engine, class, variant, capacities) {
            NewNode::Opened(host) => {
                if let Some(order) = order {
                    order.opened(host);
                }
                return Some(host);
            }
            NewNode::WaitsForReservation => return None,
            NewNode::Refused => {}
        }
    }
    None
}

/// The first node, in the order of the engine, that takes one more.
pub fn place_on_existing(
    engine: &mut Engine<'_, '_>,
    class: ClassIndex,
    variant: VariantIndex,
    cursor: &mut Cursor,
) -> Option<HostIndex> {
    let start = cursor.next.get(&variant).copied().unwrap_or_default();
    let found = engine.find_existing(class, variant, start, None);
    if cursor.advances {
        cursor.next.insert(variant, found.unwrap_or(engine.problem.nodes.end()));
    }
    engine.place_on_existing(class, found?);
    found
}

/// The open node with the fewest pods, of those opened from `first` on, that takes one more.
pub fn place_on_open(
    engine: &mut Engine<'_, '_>,
    first: HostIndex,
    class: ClassIndex,
    variant: VariantIndex,
) -> Option<HostIndex> {
    let (host, narrowed) = engine.find_open(class, variant, first)?;
    engine.place_on_open(class, host, narrowed);
    Some(host)
}

/// The same, of equals the one that the reference comes to first.
fn place_in_order(
    engine: &mut Engine<'_, '_>,
    order: &mut OpenOrder,
    class: ClassIndex,
    variant: VariantIndex,
) -> Option<HostIndex> {
    let (host, narrowed) = engine.find_open_in_order(class, variant, order.hosts(), |host| order.place(host))?;
    engine.place_on_open(class, host, narrowed);
    order.placed(host);
    Some(host)
}

/// What became of a pod that needs a new node.
enum NewNode {
    Opened(HostIndex),
    /// Its reservation is used up by this very plan. The reference then asks neither other pools nor preferences: next time the
    /// reservation is known to be used up, and the pod gets another node.
    WaitsForReservation,
    Refused,
}

/// What new nodes take of limits, by what they may become, which for many is the same.
type Capacities = HashMap<(TemplateIndex, OfferingSet), LimitedCapacity>;

fn place_on_new(
    engine: &mut Engine<'_, '_>,
    class: ClassIndex,
    variant: VariantIndex,
    capacities: &mut Capacities,
) -> NewNode {
    let problem = engine.problem;
    let mut used_up = false;
    for (position, template) in problem.templates.enumerated() {
        if used_up && !template.is_reserved() {
            return NewNode::WaitsForReservation;
        }
        match engine.opened(class, variant, position, None) {
            Ok(open) => {
                let capacity = capacities.entry((position, open.set.clone()));
                let capacity = capacity.or_insert_with(|| most_capacity(engine, &open)).clone();
                return NewNode::Opened(engine.open(class, open, capacity));
            }
            Err(Refused::Limit { quota, .. }) => {
                let is_reservation = matches!(problem.quotas[quota].scope, LimitScope::Reservation(_));
                used_up |= is_reservation && engine.waits_for_reservations();
            }
            Err(_) => {}
        }
    }
    NewNode::Refused
}
