//! Nodes of static pools: as many as `spec.replicas` says, whether or not a pod needs them.
//! Behaviour: reference, section 3.11.

use crate::scheduler::template::TemplateIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Refusal};

use super::cheapest::{improve, open_nodes};
use super::choice::{capacity_of, choose};
use crate::scheduler::Demand;

/// A static pool that stays below its replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortfall {
    pub template: TemplateIndex,
    pub missing: usize,
    pub because: Refusal,
}

/// Opens the nodes that static pools lack, each of the cheapest type that its pool allows, as far as limits let it.
pub fn open_missing(engine: &mut Engine<'_, '_>) -> Vec<Shortfall> {
    let mut shortfalls = Vec::new();
    for (position, template) in engine.problem.templates.enumerated() {
        // Of each pool one template is for no reservation.
        let Some(replicas) = template.replicas.filter(|_| !template.is_reserved()) else { continue };
        let missing = replicas.wanted.saturating_sub(replicas.there);
        for opened in 0..missing {
            if let Err(because) = open_one(engine, position) {
                shortfalls.push(Shortfall { template: position, missing: missing - opened, because });
                break;
            }
        }
    }
    shortfalls
}

/// Opens one node of the static pool of a template, in a capacity reservation where one has an instance left, as launches do; the limit
/// that forbids it, or that nothing is on offer.
pub fn open_one(engine: &mut Engine<'_, '_>, template: TemplateIndex) -> Result<HostIndex, Refusal> {
    let templates = &engine.problem.templates;
    let mut because = None;
    for (position, of_pool) in templates.enumerated().filter(|(_, it)| it.pool == templates[template].pool) {
        match open_of(engine, position) {
            Ok(host) => return Ok(host),
            // A pool that is for reservations alone waits for those.
            Err(_) if of_pool.is_left_to_reservations() && because.is_some() => {}
            Err(refusal) => because = Some(refusal),
        }
    }
    Err(because.unwrap_or(Refusal::Offering))
}

fn open_of(engine: &mut Engine<'_, '_>, template: TemplateIndex) -> Result<HostIndex, Refusal> {
    let open = engine.opened_empty(template)?;
    let choice = choose(engine, &open).ok_or(Refusal::Offering)?;
    let capacity = capacity_of(engine, &open, &choice);
    let host = engine.open_empty(open, capacity);
    improve::tighten(engine, host);
    Ok(host)
}

/// Puts waiting pods of one level of preferences on these nodes, as far as they have room.
pub fn use_room(engine: &mut Engine<'_, '_>, hosts: &[HostIndex], level: usize, wanted: &mut Demand) {
    let problem = engine.problem;
    let mut order: Vec<ClassIndex> = wanted.keys().copied().collect();
    order.sort_by_key(|class| {
        (std::cmp::Reverse((problem.classes[*class].request[0], problem.classes[*class].request[1])), *class)
    });
    for class in order {
        let (Some(count), Some(variant)) = (wanted.get_mut(&class), problem.classes[class].variants.get(level)) else {
            continue;
        };
        for host in hosts {
            while *count > 0 && open_nodes::add(engine, class, *variant, *host) {
                *count -= 1;
            }
        }
    }
    wanted.retain(|_, count| *count > 0);
}
