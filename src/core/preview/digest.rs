//! What a plan decides as one hash, whatever moment it was made at, for whatever name of a revision and at whatever day's prices.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::hexadecimal;
use crate::plan::{Plan, Step};

/// Hexadecimal digits of a digest that people see, and write to approve a plan: the fewest that count. Who may push chooses what is hashed, and
/// tries as many plans as they like without showing one: with 7 digits (28 bits) the second of two that begin alike is found in a second. With 12
/// (48 bits) it takes years to find one that begins as a given plan does. Two of one's own that begin alike take minutes still: reviews remember
/// what was shown, and ask for all of the digits where two of them do (`controller/reviews/digests.rs`).
pub const DIGEST_DIGITS: usize = 12;

/// SHA-256 over what a plan decides, in hexadecimal: its steps in their order with their moves and waves, where pods go, which pods wait
/// and what is at risk. Two plans with one digest do the same to the same nodes and pods, and launch the same: by the same NodeClaims, of
/// classes that say the same, and with the same images, as far as these are known.
///
/// Left out: the moment, the revisions, prices, sentences, what is only known of the base, and what stays as it is.
pub fn digest(plan: &Plan) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    add(&plan.cluster);
    for step in &plan.steps {
        add("step");
        add_step(step, &mut add);
    }
    for placement in &plan.placements {
        add("placement");
        add(&placement.pod);
        add(&placement.node);
    }
    for pod in plan.pending.iter().flat_map(|group| &group.pods) {
        add("pending");
        add(pod);
    }
    for risk in &plan.risks {
        add("risk");
        add(&format!("{:?}", risk.code));
        add(&risk.subject);
    }
    let launches = plan.steps.iter().any(|step| step.launch.is_some());
    for fact in plan.cloud_facts.iter().filter(|fact| launches && fact.used && !fact.code.is_fleeting()) {
        if let Some(image) = &fact.after {
            add("image");
            add(&fact.node_class);
            add(&fact.subject);
            add(image);
        }
    }
    hexadecimal(hash.finalize())
}

/// SHA-256 over texts in their order, in hexadecimal: what is said, to tell it from what was said before.
pub fn hash_of_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hexadecimal(hash.finalize())
}

fn add_step(step: &Step, add: &mut impl FnMut(&str)) {
    add(&format!("{:?} {} {:?} {:?}", step.kind, step.move_number, step.wave, step.reason.code));
    for text in [&step.node_pool, &step.node_claim, &step.instance_type, &step.zone, &step.capacity_type] {
        add(text);
    }
    add(step.node.as_deref().unwrap_or_default());
    step.pods.iter().for_each(|pod| add(pod));
    let Some(launch) = &step.launch else { return };
    for alternative in &*launch.alternatives {
        add("or");
        for text in [&alternative.instance_type, &alternative.zone, &alternative.capacity_type] {
            add(text);
        }
    }
    add("launch");
    add_value(&launch.node_claim, add);
    add(launch.node_class_hash.as_deref().unwrap_or_default());
}

/// In one order, whatever the one that the members are written in: an API server keeps its own.
fn add_value(value: &Value, add: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            add("{");
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            for (name, member) in members {
                add(name);
                add_value(member, add);
            }
            add("}");
        }
        Value::Array(items) => {
            add("[");
            items.iter().for_each(|item| add_value(item, add));
            add("]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => add(&value.to_string()),
    }
}
