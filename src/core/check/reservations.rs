//! Capacity reservations: what is launched into one is of its type, in its zone, of a class that selects it, and no more than is
//! left.

use std::collections::BTreeMap;

use crate::plan::{Plan, StepKind};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::Operator;

use super::known::Known;
use super::steps::{alternatives, claim, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// What a class or the catalog says of one reservation.
struct Stated {
    instance_type: String,
    zone: String,
    left: Option<usize>,
    ended: bool,
}

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let mut launched: BTreeMap<String, usize> = BTreeMap::new();
    let mut least: BTreeMap<String, usize> = BTreeMap::new();
    for step in steps(plan, StepKind::Create) {
        let alternatives = alternatives(step);
        let reserved = alternatives.iter().filter(|it| it.capacity_type == keys::RESERVED).count();
        let pinned = claim(step).and_then(|claim| pinned_to(&claim));
        let mut wrong = |text: String| findings.add(ViolationCode::WrongReservation, ViolationPlace::step(step), text);
        let Some(id) = pinned.filter(|_| reserved > 0) else {
            if reserved > 0 {
                wrong("is reserved, and its claim names no one reservation".to_owned());
            }
            continue;
        };
        if reserved < alternatives.len() {
            wrong(format!("is launched into {id} or not"));
        }
        if !known.inputs.policy.feature_gates.reserved_capacity {
            wrong(format!("uses {id} although the gate is off"));
        }
        let class = known.pools.get(step.node_pool.as_str()).map(|it| &it.spec.template.spec.node_class_ref.name);
        let class = class.and_then(|name| known.classes.get(name.as_str()));
        let Some(stated) = class.and_then(|class| stated(class, &id, known)) else {
            wrong(format!("its class does not select {id}"));
            continue;
        };
        if stated.ended {
            wrong(format!("{id} has ended or is about to"));
        }
        for it in alternatives.iter().filter(|it| it.instance_type != stated.instance_type || it.zone != stated.zone) {
            let (name, zone) = (&stated.instance_type, &stated.zone);
            wrong(format!("{id} is of {name} in {zone}, not of {} in {}", it.instance_type, it.zone));
        }
        let left = stated.left.unwrap_or(0);
        let least = least.entry(id.clone()).or_insert(left);
        *least = left.min(*least);
        *launched.entry(id).or_default() += 1;
    }
    for claim in &known.inputs.snapshot.node_claims {
        if let Some(id) = pinned_to(claim).filter(|_| !claim.is_true("Launched")) {
            launched.entry(id).and_modify(|count| *count += 1);
        }
    }
    for (id, count) in launched {
        let left = least.get(&id).copied().unwrap_or(0);
        if count > left {
            let text = format!("{count} nodes are launched into it, and {left} instances are left");
            findings.add(ViolationCode::ReservationOverused, ViolationPlace::Reservation(id.to_owned()), text);
        }
    }
}

/// The one reservation that a claim can be launched into.
pub(super) fn pinned_to(claim: &NodeClaim) -> Option<String> {
    let labelled = claim.metadata.labels.as_ref().and_then(|labels| labels.get(keys::CAPACITY_RESERVATION_ID));
    let mut required = claim.spec.requirements.iter().filter(|it| it.key == keys::CAPACITY_RESERVATION_ID);
    let required = required.find(|it| it.operator == Operator::In && it.values.len() == 1);
    labelled.or_else(|| required.and_then(|it| it.values.first())).cloned()
}

/// What is known of a reservation, if the class selects it: by its status in the cluster, or by id.
fn stated(class: &EC2NodeClass, id: &str, known: &Known<'_>) -> Option<Stated> {
    let terms = &class.spec.capacity_reservation_selector_terms;
    let mut of_catalog = None;
    for instance_type in &known.inputs.catalog.instance_types {
        for offering in &instance_type.offerings {
            if offering.reservation_id.as_deref() == Some(id) && offering.available {
                of_catalog = Some((instance_type, offering));
            }
        }
    }
    let left = of_catalog.and_then(|(_, offering)| offering.available_instance_count);
    let left = left.and_then(|count| usize::try_from(count).ok());
    let mut applied = known.inputs.snapshot.node_classes.iter().filter(|it| it.metadata.name == class.metadata.name);
    let mut listed = applied.find_map(|it| it.status.as_ref()).into_iter().flat_map(|it| &it.capacity_reservations);
    let listed = listed.find(|it| {
        it.id == id
            && terms.iter().any(|term| {
                let differs = |asked: &Option<String>, has: &Option<String>| {
                    matches!((asked, has), (Some(asked), Some(has)) if asked != has)
                };
                term.id.as_deref().is_none_or(|asked| asked == id)
                    && !differs(&term.owner_id, &it.owner_id)
                    && !differs(&term.instance_match_criteria, &it.instance_match_criteria)
            })
    });
    if let Some(listed) = listed {
        let ended = listed.end_time.as_ref().is_some_and(|end| end.0 <= known.inputs.now);
        let counted = listed.available_instance_count.map(|count| usize::try_from(count).unwrap_or(0));
        return Some(Stated {
            instance_type: listed.instance_type.clone(),
            zone: listed.availability_zone.clone(),
            left: counted.or(left),
            ended: ended || listed.state.as_deref() == Some("expiring"),
        });
    }
    let (instance_type, offering) = of_catalog.filter(|_| terms.iter().any(|term| term.id.as_deref() == Some(id)))?;
    Some(Stated { instance_type: instance_type.name.clone(), zone: offering.zone.clone(), left, ended: false })
}
