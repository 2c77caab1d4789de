//! Nodes to come: allowed by pool and class, on sale at that price, within the limits; and how they will look to pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;

use crate::catalog::{InstanceType, Offering};
use crate::model::requirements::is_well_known;
use crate::model::resources::{NODES, format_amount};
use crate::model::{Requirements, Resources};
use crate::plan::{Alternative, Plan, ReasonCode, Step, StepKind};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::{NodePool, Operator};
use cutlist_api::settings::{MinValuesPolicy, Packing};

use super::known::{Existing, Known, add_old_names, new_node, quantities, to_core_taint};
use super::removals::Rights;
use super::steps::{alternatives, claim, removed_nodes, shown, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};
use super::{classes, reservations};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for step in steps(plan, StepKind::Create) {
        let Some(pool) = known.pools.get(step.node_pool.as_str()) else {
            findings.add(
                ViolationCode::UnknownNodePool,
                ViolationPlace::step(step),
                format!("no pool {}", step.node_pool),
            );
            continue;
        };
        let class = &pool.spec.template.spec.node_class_ref.name;
        if !known.classes.contains_key(class.as_str()) {
            findings.add(ViolationCode::UnknownNodeClass, ViolationPlace::step(step), format!("no class {class}"));
        }
        if step.pods.is_empty() && pool.spec.replicas.is_none() {
            findings.add(ViolationCode::CreatedForNothing, ViolationPlace::step(step), "no pod is for this node");
        }
        classes::ready(step, pool, known, findings);
        shown_is_first_alternative(step, findings);
        let creation = Creation::new(step, pool, known);
        for alternative in alternatives(step).iter() {
            offering(&creation, alternative, known, findings);
        }
        launch(&creation, findings);
        minimum_values(step, pool, known, findings);
    }
    replicas(plan, known, findings);
    limits(plan, known, findings);
    cluster_limits(plan, known, findings);
    reservations::check(plan, known, findings);
}

/// A step that creates a node, with what all its alternatives have in common: it is read once, not once for each of them.
pub(super) struct Creation<'a> {
    step: &'a Step,
    pool: &'a NodePool,
    /// `None` where it cannot be read.
    claim: Option<NodeClaim>,
    of_claim: Requirements,
    of_pool: Requirements,
    /// By the name of each type that may be launched: its labels, where only one value is left.
    of_types: BTreeMap<String, BTreeMap<String, String>>,
}

impl<'a> Creation<'a> {
    pub(super) fn new(step: &'a Step, pool: &'a NodePool, known: &Known<'_>) -> Self {
        let claim = claim(step);
        let of_claim = claim.as_ref().map(|claim| Requirements::from_entries(&claim.spec.requirements));
        let (of_claim, of_pool) = (of_claim.unwrap_or_default(), pool_requirements(pool));
        let names: BTreeSet<String> = alternatives(step).iter().map(|it| it.instance_type.clone()).collect();
        let of_type = |name: String| {
            let labels = labels_of_type(known.launchable_type(pool, &name)?, &of_claim, &of_pool);
            Some((name, labels))
        };
        let of_types = names.into_iter().filter_map(of_type).collect();
        Self { step, pool, claim, of_claim, of_pool, of_types }
    }
}

fn shown_is_first_alternative(step: &Step, findings: &mut Findings) {
    let alternatives = step.launch.as_ref().map(|launch| launch.alternatives.as_slice());
    if alternatives.and_then(<[Alternative]>::first) != Some(&shown(step)) {
        findings.add(
            ViolationCode::LaunchDiffers,
            ViolationPlace::step(step),
            "the first alternative is not the node that is shown",
        );
    }
}

fn offering(creation: &Creation<'_>, alternative: &Alternative, known: &Known<'_>, findings: &mut Findings) {
    let (step, pool) = (creation.step, creation.pool);
    let Alternative { instance_type: name, zone, capacity_type, price_per_hour } = alternative;
    let what = format!("{name} {capacity_type} in {zone}");
    let Some((instance_type, offering)) = known.launched(pool, name, zone, capacity_type) else {
        findings.add(
            ViolationCode::OfferingNotAvailable,
            ViolationPlace::step(step),
            format!("{what} is not in the catalog"),
        );
        return;
    };
    if !offering.available || was_refused(alternative, known) {
        findings.add(
            ViolationCode::OfferingNotAvailable,
            ViolationPlace::step(step),
            format!("{what} is not available"),
        );
    }
    if offering.price != *price_per_hour {
        findings.add(
            ViolationCode::WrongPrice,
            ViolationPlace::step(step),
            format!("{what} costs {}, not {price_per_hour}", offering.price),
        );
    }
    if !known.may_have_subnet(pool, zone) {
        findings.add(ViolationCode::ZoneWithoutSubnet, ViolationPlace::step(step), format!("no subnet in {zone}"));
    }
    if !classes::may_have_image(pool, instance_type, known) {
        findings.add(ViolationCode::TypeWithoutImage, ViolationPlace::step(step), format!("no image for {name}"));
    }
    let labels = labels(creation, instance_type, &offering);
    for (key, requirement) in creation.of_pool.iter() {
        let allowed = match labels.get(key) {
            Some(value) => requirement.allows(value),
            None => requirement.allows_absence(),
        };
        if !allowed {
            let value = labels.get(key).map_or("absent", String::as_str);
            let text = format!("{what}: pool {} does not allow {key}={value}", step.node_pool);
            findings.add(ViolationCode::InstanceTypeNotAllowed, ViolationPlace::step(step), text);
        }
    }
}

/// EC2 had none of it less than three minutes ago, as the caller remembers or a claim shows.
fn was_refused(alternative: &Alternative, known: &Known<'_>) -> bool {
    let Alternative { instance_type, zone, capacity_type, .. } = alternative;
    let remembered = known.inputs.policy.refused.iter().any(|refused| {
        refused.instance_type == *instance_type
            && refused.zone == *zone
            && refused.capacity_type == *capacity_type
            && known.is_recent(refused.at)
    });
    let shown = known.short_of_capacity.iter().any(|claim| {
        let asked_for = |key: &str, value: &String| {
            let of_key = claim.spec.requirements.iter().filter(|it| it.key == key && it.operator == Operator::In);
            of_key.into_iter().any(|it| it.values.contains(value))
        };
        asked_for(keys::INSTANCE_TYPE, instance_type)
            && asked_for(keys::ZONE, zone)
            && asked_for(keys::CAPACITY_TYPE, capacity_type)
    });
    remembered || shown
}

fn pool_requirements(pool: &NodePool) -> Requirements {
    let template = &pool.spec.template;
    let mut requirements = Requirements::from_entries(&template.spec.requirements);
    requirements.extend(&Requirements::from_labels(&template.metadata.labels));
    requirements
}

/// The claim must carry the pool's template unchanged, because nobody looks at the pool again.
fn launch(creation: &Creation<'_>, findings: &mut Findings) {
    let (step, pool) = (creation.step, creation.pool);
    let Some(claim) = &creation.claim else {
        findings.add(ViolationCode::LaunchDiffers, ViolationPlace::step(step), "no NodeClaim that can be read");
        return;
    };
    let template = &pool.spec.template;
    let labels = claim.metadata.labels.clone().unwrap_or_default();
    let facts = [
        ("metadata.name", claim.metadata.name.as_deref() == Some(step.node_claim.as_str())),
        ("label karpenter.sh/nodepool", labels.get(keys::NODE_POOL) == Some(&step.node_pool)),
        ("labels", template.metadata.labels.iter().all(|(key, value)| labels.get(key) == Some(value))),
        ("spec.nodeClassRef", claim.spec.node_class_ref.is_same_class(&template.spec.node_class_ref)),
        ("spec.taints", claim.spec.taints == template.spec.taints),
        ("spec.startupTaints", claim.spec.startup_taints == template.spec.startup_taints),
        ("spec.expireAfter", claim.spec.expire_after == template.spec.expire_after),
        ("spec.terminationGracePeriod", claim.spec.termination_grace_period == template.spec.termination_grace_period),
    ];
    for (field, _) in facts.iter().filter(|(_, same)| !same) {
        findings.add(
            ViolationCode::LaunchDiffers,
            ViolationPlace::step(step),
            format!("{field} is not what pool {} says", step.node_pool),
        );
    }
    for alternative in alternatives(step).iter() {
        let chosen = [
            (keys::INSTANCE_TYPE, &alternative.instance_type),
            (keys::ZONE, &alternative.zone),
            (keys::CAPACITY_TYPE, &alternative.capacity_type),
        ];
        for (key, value) in chosen {
            if creation.of_claim.get(key).is_some_and(|requirement| !requirement.allows(value)) {
                let text = format!("the claim's requirements do not allow {key}={value}, which may be launched");
                findings.add(ViolationCode::LaunchDiffers, ViolationPlace::step(step), text);
            }
        }
    }
}

/// `minValues`: as many different values as asked for among the alternatives.
fn minimum_values(step: &Step, pool: &NodePool, known: &Known<'_>, findings: &mut Findings) {
    for requirement in &pool.spec.template.spec.requirements {
        let Some(minimum) = requirement.min_values else { continue };
        let minimum = lowered(step, &requirement.key, known).unwrap_or(minimum);
        let mut values = BTreeSet::new();
        for alternative in alternatives(step).iter() {
            let Some(instance_type) = known.types.get(alternative.instance_type.as_str()) else { continue };
            match requirement.key.as_str() {
                keys::ZONE => values.extend([alternative.zone.clone()]),
                keys::CAPACITY_TYPE => values.extend([alternative.capacity_type.clone()]),
                key => values.extend(instance_type.requirements.get(key).into_iter().flatten().cloned()),
            }
        }
        if values.len() < usize::try_from(minimum).unwrap_or(usize::MAX) {
            let text =
                format!("{} values of {}, pool {} asks for {minimum}", values.len(), requirement.key, step.node_pool);
            findings.add(ViolationCode::TooFewAlternatives, ViolationPlace::step(step), text);
        }
    }
}

/// What the claim asks for instead, where that is allowed and said: never to save money.
fn lowered(step: &Step, key: &str, known: &Known<'_>) -> Option<u32> {
    let claim = claim(step)?;
    let best_effort = known.inputs.policy.scheduling.min_values_policy == MinValuesPolicy::BestEffort;
    let said = claim.metadata.annotations?.get(keys::MIN_VALUES_RELAXED).is_some_and(|value| value == "true");
    let of_claim = claim.spec.requirements.iter().find(|requirement| requirement.key == key)?;
    of_claim.min_values.filter(|_| best_effort && said && step.reason.code != ReasonCode::Underutilized)
}

/// Static pools get nodes up to their replicas and lose those beyond, and nothing else makes them grow or shrink.
fn replicas(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for (name, pool) in &known.pools {
        let of_pool = |kind: StepKind, surplus: bool| {
            let steps = steps(plan, kind).filter(|step| step.node_pool == **name);
            steps.filter(|step| (step.reason.code == ReasonCode::StaticCapacity) == surplus).count()
        };
        let place = ViolationPlace::pool(name);
        let (added, taken) = (of_pool(StepKind::Create, true), of_pool(StepKind::Remove, true));
        let gate = known.inputs.policy.feature_gates.static_capacity;
        let Some(replicas) = pool.spec.replicas.filter(|_| gate) else {
            // Pods of a node that was too many may get a new one.
            let surplus = |number: u32| {
                let mut removed = steps(plan, StepKind::Remove).filter(|step| step.move_number == number);
                removed.any(|step| step.reason.code == ReasonCode::StaticCapacity)
            };
            let mut created = steps(plan, StepKind::Create).filter(|step| step.node_pool == **name);
            let alone =
                created.any(|step| step.reason.code == ReasonCode::StaticCapacity && !surplus(step.move_number));
            if alone || taken > 0 {
                findings.add(ViolationCode::WrongReplicas, place, "is not planned as a static pool");
            }
            continue;
        };
        let replicas = usize::try_from(replicas).unwrap_or(0);
        let of_pool_now = known.nodes.values().filter(|it| it.pool.as_deref() == Some(*name) && it.claim.is_some());
        let there = of_pool_now.filter(|it| !it.going).count();
        if added > replicas.saturating_sub(there) || taken > there.saturating_sub(replicas) {
            let text = format!("{there} nodes, {added} created, {taken} removed, and replicas is {replicas}");
            findings.add(ViolationCode::WrongReplicas, place.clone(), text);
        }
        let mut created = steps(plan, StepKind::Create).filter(|step| step.node_pool == **name);
        if created.any(|step| !Rights::of(step.reason.code).adds_to_static_pool)
            || of_pool(StepKind::Create, false) > of_pool(StepKind::Remove, false)
        {
            findings.add(ViolationCode::WrongReplicas, place, "grows for pods, although it is static");
        }
    }
}

/// All pools together must stay within `spec.limits` of `cutlist.yaml`.
fn cluster_limits(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let created: Vec<&Step> = steps(plan, StepKind::Create).collect();
    let mut used = Resources::new();
    for existing in known.nodes.values().filter(|it| it.pool.is_some() && it.claim.is_some()) {
        used.add(&capacity_of_existing(existing.node.clone(), existing.claim, known));
    }
    for step in &created {
        used.add(&capacity_to_come(step, known));
    }
    for (resource, limit) in known.inputs.policy.limits.iter().filter(|_| !created.is_empty()) {
        let Ok(limit) = Resources::parse([(resource.as_str(), limit.to_string())]) else { continue };
        let (used, limit) = (used.get(resource), limit.get(resource));
        if used > limit {
            let text = format!("{resource}: {} of {}", format_amount(resource, used), format_amount(resource, limit));
            findings.add(ViolationCode::LimitExceeded, ViolationPlace::Cluster, text);
        }
    }
}

/// Of the node that is shown.
fn capacity_to_come(step: &Step, known: &Known<'_>) -> Resources {
    let pool = known.pools.get(step.node_pool.as_str());
    let launched = pool.and_then(|pool| known.launched(pool, &step.instance_type, &step.zone, &step.capacity_type));
    let mut capacity = launched.map(|(instance_type, _)| instance_type.capacity.clone()).unwrap_or_default();
    capacity.add(&one_node());
    capacity
}

/// What exists and what is created must stay within `spec.limits`: a node counts until it is gone, and nothing goes
/// before what replaces it is there. Under `packing: karpenter` one that goes does not: the reference's scheduler counts the nodes that stay.
fn limits(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let removed = removed_nodes(plan);
    let goes = |name: &str, existing: &Existing<'_>| existing.going || removed.contains(name);
    let counts = |name: &str, existing: &Existing<'_>| {
        known.inputs.policy.packing != Packing::Karpenter || !goes(name, existing)
    };
    for (name, pool) in &known.pools {
        let created: Vec<&Step> = steps(plan, StepKind::Create).filter(|step| step.node_pool == **name).collect();
        if created.is_empty() {
            continue;
        }
        let mut used = Resources::new();
        let of_pool = known.nodes.iter().filter(|(_, it)| it.pool.as_deref() == Some(*name));
        for (_, existing) in of_pool.filter(|(node, it)| counts(node, it)) {
            used.add(&capacity_of_existing(existing.node.clone(), existing.claim, known));
        }
        for step in created {
            used.add(&capacity_to_come(step, known));
        }
        for (resource, limit) in &pool.spec.limits {
            let Ok(limit) = Resources::parse([(resource.as_str(), limit.to_string())]) else { continue };
            let (used, limit) = (used.get(resource), limit.get(resource));
            if used > limit {
                let text =
                    format!("{resource}: {} of {}", format_amount(resource, used), format_amount(resource, limit));
                findings.add(ViolationCode::LimitExceeded, ViolationPlace::pool(name), text);
            }
        }
    }
}

fn one_node() -> Resources {
    [(NODES.to_owned(), 1)].into_iter().collect()
}

/// Capacity as the node reports it, else as its claim does, else as the catalog says.
fn capacity_of_existing(node: Node, claim: Option<&NodeClaim>, known: &Known<'_>) -> Resources {
    let from_node = node.status.and_then(|status| status.capacity).unwrap_or_default();
    let from_claim = claim.and_then(|claim| claim.status.as_ref()).map(|status| &status.capacity);
    let mut capacity = if !from_node.is_empty() {
        Resources::parse(from_node.iter().map(|(name, amount)| (name.as_str(), amount.0.clone()))).unwrap_or_default()
    } else if let Some(amounts) = from_claim.filter(|amounts| !amounts.is_empty()) {
        Resources::parse(amounts.iter().map(|(name, amount)| (name.as_str(), amount.to_string()))).unwrap_or_default()
    } else {
        let labels = node.metadata.labels.unwrap_or_default();
        let instance_type = labels.get(keys::INSTANCE_TYPE).and_then(|name| known.types.get(name.as_str()));
        instance_type.map(|it| it.capacity.clone()).unwrap_or_default()
    };
    capacity.set(NODES, 1);
    capacity
}

/// The node that a creation leads to when this alternative is launched; `None` when the plan names what does not exist.
pub(super) fn node_to_come(creation: &Creation<'_>, alternative: &Alternative, known: &Known<'_>) -> Option<Node> {
    let (step, pool) = (creation.step, creation.pool);
    let Alternative { instance_type, zone, capacity_type, .. } = alternative;
    let (instance_type, offering) = known.launched(pool, instance_type, zone, capacity_type)?;
    let taints = pool.spec.template.spec.taints.iter().map(to_core_taint).collect();
    let labels = labels(creation, instance_type, &offering);
    Some(new_node(&step.node_claim, labels, taints, quantities(&instance_type.allocatable())))
}

/// Of the values that the type has for each label, the one that claim and pool allow; of tenancies the one that a launch takes of them.
fn labels_of_type(
    instance_type: &InstanceType,
    of_claim: &Requirements,
    of_pool: &Requirements,
) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for (key, values) in &instance_type.requirements {
        let required = [of_claim.get(key), of_pool.get(key)];
        let is_allowed = |value: &str| required.iter().flatten().all(|requirement| requirement.allows(value));
        if key == keys::TENANCY {
            labels.extend(instance_type.tenancy(is_allowed).map(|value| (key.clone(), value.to_owned())));
            continue;
        }
        let mut allowed = values.iter().filter(|value| is_allowed(value));
        if let (Some(value), None) = (allowed.next(), allowed.next()) {
            labels.insert(key.clone(), value.clone());
        }
    }
    labels
}

/// Labels of the node once it has initialized: of the type where it has one value, of the offering, of the pool's
/// template, of the claim, and those that Kubernetes and the CSI driver add under older names.
fn labels(creation: &Creation<'_>, instance_type: &InstanceType, offering: &Offering) -> BTreeMap<String, String> {
    let Creation { step, pool, claim, of_types, .. } = creation;
    let mut labels = of_types.get(instance_type.name.as_str()).cloned().unwrap_or_default();
    labels.insert(keys::INSTANCE_TYPE.to_owned(), instance_type.name.clone());
    labels.insert(keys::ZONE.to_owned(), offering.zone.clone());
    labels.insert(keys::CAPACITY_TYPE.to_owned(), offering.capacity_type.clone());
    if let Some(id) = claim.as_ref().and_then(reservations::pinned_to) {
        labels.insert(keys::CAPACITY_RESERVATION_ID.to_owned(), id);
    }
    if let Some(zone_id) = &offering.zone_id {
        labels.insert(keys::ZONE_ID.to_owned(), zone_id.clone());
    }
    let chosen = claim.iter().flat_map(|claim| &claim.spec.requirements);
    for requirement in chosen.filter(|it| it.operator == Operator::In && !is_well_known(&it.key)) {
        if let [value] = requirement.values.as_slice() {
            labels.insert(requirement.key.clone(), value.clone());
        }
    }
    let labels_of_claim = claim.as_ref().and_then(|claim| claim.metadata.labels.clone()).unwrap_or_default();
    labels.extend(labels_of_claim.into_iter().filter(|(key, _)| !is_well_known(key)));
    labels.extend(pool.spec.template.metadata.labels.clone());
    for (key, value) in [
        (keys::NODE_POOL, step.node_pool.as_str()),
        (keys::EC2_NODE_CLASS, &pool.spec.template.spec.node_class_ref.name),
        (keys::HOSTNAME, &step.node_claim),
        (keys::REGISTERED, "true"),
        (keys::INITIALIZED, "true"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    add_old_names(&mut labels);
    labels
}
