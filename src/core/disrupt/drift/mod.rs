//! Drift and expiry: nodes that no longer are what the definitions say.
//! Behaviour: reference, section 5 (order of evaluation) and 4.8.

mod cause;
mod condition;
mod images;
mod live;
mod selected;

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::lifecycle::conditions;
use crate::lifecycle::expiry::is_of_other_template;
use crate::model::shown_hash::is_same;
use crate::model::static_hash::{HASH_VERSION, class_hash, node_pool_hash};
use crate::model::time::seconds_between;
use crate::model::{Requirement, Requirements};
use crate::plan::{DefinitionPlace, IMAGE_LOCK, ReasonCode};
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::{NodePool, NodeSelectorRequirement};

pub use cause::{Drift, DriftCause};
use cause::{INSTANCE_TYPE_NOT_FOUND, INSTANCE_TYPE_NOT_IN_CATALOG};
pub use condition::to_mark;
pub use images::facts;
pub use selected::notes;
use selected::{Selector, Verdict};

/// A type that EC2 stopped listing is believed gone only for claims older than this.
const INSTANCE_TYPE_GRACE_SECONDS: i64 = 3_600;

/// How a machine differs from what its pool wants, as far as anybody can see.
pub fn drift(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: &NodePool) -> Option<Drift> {
    seen(inputs, machine, pool).or_else(|| reported(inputs, machine, pool))
}

/// Where the definition has what a node that goes for this reason is too old for, or differs in.
pub fn definition(inputs: &Inputs<'_>, machine: &Machine<'_>, code: ReasonCode) -> Option<DefinitionPlace> {
    let name = machine.node_pool()?;
    let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name))?;
    let template = &pool.spec.template.spec;
    match code {
        // A node keeps the age that it was launched with, which the pool may not have any more.
        ReasonCode::Expired if machine.claim?.spec.expire_after == template.expire_after => {
            inputs.places.of_pool(name, "/spec/template/spec/expireAfter")
        }
        ReasonCode::Drifted => match seen(inputs, machine, pool)?.cause {
            DriftCause::Template | DriftCause::Requirement { position: None, .. } => {
                inputs.places.of_pool(name, "/spec/template")
            }
            DriftCause::Requirement { position: Some(position), .. } => {
                inputs.places.of_pool(name, &format!("/spec/template/spec/requirements/{position}"))
            }
            DriftCause::Selector(Selector::Images)
                if inputs.policy.images.of_class(&template.node_class_ref.name).is_some() =>
            {
                let class = &template.node_class_ref.name;
                let locked = selected::classes(inputs, machine.claim?, pool)?;
                let image = &locked.locked_image(inputs, machine)?.id;
                inputs.places.of(IMAGE_LOCK, "", &format!("{class}/{image}"))
            }
            DriftCause::Selector(selector) => {
                let field = format!("/spec/{}", selector.field());
                inputs.places.of("EC2NodeClass", &template.node_class_ref.name, &field)
            }
            DriftCause::NodeClass => inputs.places.of("EC2NodeClass", &template.node_class_ref.name, ""),
            DriftCause::Catalog | DriftCause::Reported(_) => None,
        },
        _ => None,
    }
}

/// How it differs by what is compared here; in the reference's order.
fn seen(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: &NodePool) -> Option<Drift> {
    let claim = machine.claim?;
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    if template_differs(inputs, claim, pool) == Some(true) {
        let message = format!("the template of NodePool {name} has changed");
        return Some(Drift { cause: DriftCause::Template, message });
    }
    let mut labels = machine.labels.clone();
    labels.extend(claim.metadata.labels.clone().unwrap_or_default());
    let requirements = Requirements::from_entries(&pool.spec.template.spec.requirements);
    let is_unmet = |(key, requirement): &(&str, &Requirement)| {
        let value = crate::model::requirements::label(&labels, key);
        !value.map_or(requirement.allows_absence(), |value| requirement.allows(value))
    };
    if let Some((key, _)) = requirements.iter().find(is_unmet) {
        // Several entries may speak of one key.
        let refuses = |entry: &NodeSelectorRequirement| {
            Requirements::from_entries(std::slice::from_ref(entry)).iter().any(|it| it.0 == key && is_unmet(&it))
        };
        let position = pool.spec.template.spec.requirements.iter().position(refuses);
        let cause = DriftCause::Requirement { key: key.to_owned(), position };
        let message = match crate::model::requirements::label(&labels, key) {
            Some(value) => format!("NodePool {name} no longer allows {key} {value}"),
            None => format!("NodePool {name} now asks for {key}, which the node has not"),
        };
        return Some(Drift { cause, message });
    }
    let by_catalog = instance_type_gone(inputs, machine).map(|message| Drift { cause: DriftCause::Catalog, message });
    let by_class = || Some(Drift { cause: DriftCause::NodeClass, message: class_drift(inputs, claim, pool)? });
    by_catalog.or_else(by_class).or_else(|| selection_drift(inputs, machine, claim, pool))
}

/// As [`is_of_other_template`]; of a claim whose hash is of another version, by that of the applied pool, if that has the same
/// one. `None` where nothing can be compared.
fn template_differs(inputs: &Inputs<'_>, claim: &NodeClaim, pool: &NodePool) -> Option<bool> {
    if claim.annotation(keys::NODE_POOL_HASH_VERSION) == Some(HASH_VERSION) {
        return claim.annotation(keys::NODE_POOL_HASH).map(|_| is_of_other_template(claim, pool));
    }
    let applied = inputs.snapshot.node_pools.iter().find(|applied| applied.metadata.name == pool.metadata.name)?;
    let keys = (keys::NODE_POOL_HASH, keys::NODE_POOL_HASH_VERSION);
    let differs = hashes_differ(&claim.metadata.annotations, &applied.metadata.annotations, keys)?;
    Some(differs || node_pool_hash(applied) != node_pool_hash(pool))
}

/// Whether Karpenter's hashes on a claim and on what it was made of differ; `None` unless both are there, of one version.
fn hashes_differ(
    of_claim: &Option<BTreeMap<String, String>>,
    applied: &Option<BTreeMap<String, String>>,
    (hash, version): (&str, &str),
) -> Option<bool> {
    let (of_claim, applied) = (of_claim.as_ref()?, applied.as_ref()?);
    if of_claim.get(version)? != applied.get(version)? {
        return None;
    }
    Some(!is_same(of_claim.get(hash)?, applied.get(hash)?))
}

fn instance_type_gone(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<String> {
    let name = machine.label(keys::INSTANCE_TYPE)?;
    let created = machine.claim?.metadata.creation_timestamp.as_ref()?.0;
    let known = inputs.catalog.instance_types.iter().any(|instance_type| instance_type.name == name);
    let is_old = seconds_between(created, inputs.now) > INSTANCE_TYPE_GRACE_SECONDS;
    (!known && is_old).then(|| format!("the catalog has no instance type {name}"))
}

/// The class that a pool names, as it is defined.
fn defined_class<'a>(inputs: &Inputs<'a>, pool: &NodePool) -> Option<&'a EC2NodeClass> {
    let name = pool.spec.template.spec.node_class_ref.name.as_str();
    inputs.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))
}

/// A variable that nobody has set yet makes a class differ from any other, and says nothing of it. In user data it is the
/// shell's, and as good as any other text.
fn has_open_variable(class: &EC2NodeClass) -> bool {
    let mut spec = class.spec.clone();
    spec.user_data = None;
    serde_json::to_string(&spec).is_ok_and(|text| text.contains("${"))
}

/// The class in the definitions differs, in a field that launches depend on, from the one that the instance was launched with:
/// where the claim does not say which that was, from the one applied, or that from the claim.
fn class_drift(inputs: &Inputs<'_>, claim: &NodeClaim, pool: &NodePool) -> Option<String> {
    let defined = defined_class(inputs, pool).filter(|class| !has_open_variable(class))?;
    let name = defined.metadata.name.as_deref()?;
    let text = || format!("EC2NodeClass {name} has changed");
    // The bundle is part of the hash, but is the same on both sides, since it is the cluster's.
    if let Some(launched_with) = claim.annotation(keys::LAUNCHED_CLASS_HASH) {
        return (!is_same(&class_hash(defined), launched_with)).then(text);
    }
    let applied = inputs.snapshot.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name))?;
    let is_of_other = class_hashes_differ(claim, applied) == Some(true);
    (is_of_other || !is_same(&class_hash(defined), &class_hash(applied))).then(text)
}

fn class_hashes_differ(claim: &NodeClaim, applied: &EC2NodeClass) -> Option<bool> {
    let keys = (keys::EC2_NODE_CLASS_HASH, keys::EC2_NODE_CLASS_HASH_VERSION);
    hashes_differ(&claim.metadata.annotations, &applied.metadata.annotations, keys)
}

/// What the class selects in EC2 is not what the instance has.
fn selection_drift(inputs: &Inputs<'_>, machine: &Machine<'_>, claim: &NodeClaim, pool: &NodePool) -> Option<Drift> {
    let classes = selected::classes(inputs, claim, pool)?;
    let drifts = Selector::ALL.into_iter().find_map(|selector| match classes.verdict(selector, inputs, machine) {
        Verdict::Drifts(message) => Some(Drift { cause: DriftCause::Selector(selector), message }),
        Verdict::AsSelected | Verdict::NotCompared | Verdict::MayDrift => None,
    });
    drifts.filter(|_| !defined_class(inputs, pool).is_some_and(has_open_variable))
}

/// Whether the class of a pool can be compared at all: a variable without a value makes it differ from any other.
fn is_comparable(inputs: &Inputs<'_>, pool: &NodePool) -> bool {
    defined_class(inputs, pool).is_some_and(|class| !has_open_variable(class))
}

/// What only the cloud can see, and what cannot be compared here, as the claim reports it.
fn reported(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: &NodePool) -> Option<Drift> {
    let condition = machine.claim?.condition(conditions::DRIFTED).filter(|condition| condition.status == "True")?;
    let is_message = !condition.message.is_empty() && condition.message != condition.reason;
    (!is_compared(inputs, machine, pool, &condition.reason)).then(|| {
        let message = if is_message { condition.message.as_str() } else { "as the NodeClaim reports" };
        Drift { cause: DriftCause::Reported(condition.reason.clone()), message: message.to_owned() }
    })
}

/// Whether this reason for drift was looked for here, and what is needed for that was there.
fn is_compared(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: &NodePool, reason: &str) -> bool {
    let Some(claim) = machine.claim else { return false };
    match reason {
        "RequirementsDrifted" | INSTANCE_TYPE_NOT_IN_CATALOG => true,
        "NodePoolDrifted" => template_differs(inputs, claim, pool).is_some(),
        INSTANCE_TYPE_NOT_FOUND => false,
        "NodeClassDrift" => {
            let applied = inputs.snapshot.node_classes.iter();
            let mut applied =
                applied.filter(|it| it.metadata.name.as_ref() == Some(&pool.spec.template.spec.node_class_ref.name));
            defined_class(inputs, pool).is_some_and(|class| !has_open_variable(class))
                && (claim.annotation(keys::LAUNCHED_CLASS_HASH).is_some()
                    || applied.any(|applied| class_hashes_differ(claim, applied).is_some()))
        }
        _ => selected::classes(inputs, claim, pool).is_some_and(|classes| {
            let selector = Selector::ALL.into_iter().find(|selector| selector.reason() == reason);
            selector.is_some_and(|selector| classes.verdict(selector, inputs, machine) == Verdict::AsSelected)
        }),
    }
}

/// Whether a pool of the cluster was applied from the definitions.
pub fn is_from_definitions(applied: &NodePool) -> bool {
    let manager = applied.metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    manager.is_some_and(|manager| manager == keys::FIELD_MANAGER)
}
