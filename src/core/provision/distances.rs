//! How far pods are from each pool: what keeps them from its nodes, nearest first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::scheduler::offerings::is_slot_label;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::template::{Template, TemplateIndex};
use crate::scheduler::{ClassIndex, Engine, Refusal};
use cutlist_api::keys;

/// What keeps a class from one pool.
#[derive(Debug)]
pub struct Distance<'p> {
    pub pool: &'p str,
    /// All of it, as far as it does not depend on the rest; at least one.
    pub obstacles: Vec<Refusal>,
}

impl Distance<'_> {
    /// A pool that the pod does not name is further than any other; then fewer obstacles are nearer, then lesser ones.
    fn order(&self) -> (bool, usize, u8, &str) {
        let of_another_pool =
            |refusal: &Refusal| matches!(refusal, Refusal::Requirement { key } if key == keys::NODE_POOL);
        let largest = self.obstacles.iter().map(Refusal::distance).max().unwrap_or_default();
        (self.obstacles.iter().any(of_another_pool), self.obstacles.len(), largest, self.pool)
    }

    /// The same for the parts of one pool: one in whose zones the pod can not be is further than any other, and one that has less of what
    /// is short is further than one that has more.
    fn order_of_part(&self) -> (bool, (bool, usize, u8, &str), Reverse<i64>) {
        let is_elsewhere = |refusal: &Refusal| match refusal {
            Refusal::Requirement { key } => is_slot_label(key),
            refusal => *refusal == Refusal::Volume,
        };
        let available = self.obstacles.iter().filter_map(|refusal| match refusal {
            Refusal::Resource { available, .. } => Some(*available),
            _ => None,
        });
        (self.obstacles.iter().any(is_elsewhere), self.order(), Reverse(available.max().unwrap_or_default()))
    }
}

/// What keeps one more pod of the class from a node of each pool, nearest pool first. O(templates x types).
pub fn distances<'p>(engine: &Engine<'p, '_>, class: ClassIndex) -> Vec<Distance<'p>> {
    let problem = engine.problem;
    let Some(variant) = problem.classes[class].variants.last().copied() else { return Vec::new() };
    let mut distances: Vec<Distance<'p>> = Vec::new();
    // Of a pool that is divided the nearest part; none where one of them takes the pod.
    let mut nearest: BTreeMap<&str, Distance<'p>> = BTreeMap::new();
    let for_reservations_alone = pools_for_reservations_alone(engine);
    let bought_from = |(_, template): &(TemplateIndex, &Template)| !template.is_static();
    for (position, template) in problem.templates.enumerated().filter(bought_from) {
        let mut obstacles = problem.obstacles(variant, position);
        if obstacles.is_empty() {
            let refusal = engine.refusal_to_open(class, variant, position);
            obstacles.extend(refusal.map(|refusal| instead_of_spread(engine, position, refusal)));
            // It would fit; then what is left for a launch is not varied enough.
            let varied = template.min_values.first().filter(|_| obstacles.is_empty());
            obstacles.extend(varied.map(|(key, _)| Refusal::MinValues { key: key.clone() }));
        }
        let is_news = match template.is_reserved() {
            // What keeps a pod from a reservation is no news when it keeps it from the pool too.
            true => obstacles.iter().all(is_used_up) || for_reservations_alone.contains(&template.pool),
            false => !for_reservations_alone.contains(&template.pool),
        };
        let distance = Distance { pool: &template.name, obstacles };
        if template.is_part() {
            let known = nearest.get(distance.pool);
            if known.is_none_or(|known| distance.order_of_part() < known.order_of_part()) {
                nearest.insert(distance.pool, distance);
            }
        } else if is_news {
            distances.push(distance);
        }
    }
    distances.extend(nearest.into_values());
    distances.retain(|distance| !distance.obstacles.is_empty());
    distances.sort_by(|one, two| one.order().cmp(&two.order()));
    // Of several reservations of one pool each says the same.
    let mut said: BTreeSet<(&str, Vec<Refusal>)> = BTreeSet::new();
    distances.retain(|distance| said.insert((distance.pool, distance.obstacles.clone())));
    distances
}

/// Pools that ask for capacity reservations and nothing else, and have some. O(templates x log pools).
fn pools_for_reservations_alone(engine: &Engine<'_, '_>) -> BTreeSet<usize> {
    let templates = &engine.problem.templates;
    let with_some: BTreeSet<usize> = templates.iter().filter(|it| it.is_reserved()).map(|it| it.pool).collect();
    let alone = templates.iter().filter(|it| it.is_left_to_reservations() && with_some.contains(&it.pool));
    alone.map(|template| template.pool).collect()
}

/// Pods whose pool could make no more nodes were placed as kube-scheduler would, by a laxer rule: nodes alone count. A new node would
/// now be too far from the others, but what kept it from being made before is the limit.
fn instead_of_spread(engine: &Engine<'_, '_>, template: TemplateIndex, refusal: Refusal) -> Refusal {
    let is_of_placed = engine.counted_nodes_alone() && matches!(refusal, Refusal::Spread { .. });
    let limit = is_of_placed.then(|| engine.opened_empty(template).err()).flatten();
    limit.filter(|limit| matches!(limit, Refusal::Limit { .. })).unwrap_or(refusal)
}

pub fn is_used_up(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Limit { scope: LimitScope::Reservation(_), .. })
}
