//! Which images new nodes get, class by class, and how many nodes run another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::node_class::{image_for, says_images_unknown};
use crate::inputs::Inputs;
use crate::lifecycle::selectors::Selectors;
use crate::plan::{CloudFact, CloudFactCode, IMAGE_LOCK, Step, StepKind};
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::{Ami, EC2NodeClass};
use cutlist_api::keys;
use cutlist_api::node_pool::{NodeSelectorRequirement, Operator};

use super::selected::{Selector, Verdict, classes, nodes_text, terms_text};
use super::{is_comparable, live};

/// Images that nodes have now, of which so many are named.
const IMAGES_NAMED_MAX: usize = 3;

/// What the plan has to say of the images of each class, and of what else its selectors find. O(classes x nodes x images).
pub fn facts(inputs: &Inputs<'_>, machines: &[Machine<'_>], steps: &[Step]) -> Vec<CloudFact> {
    let of_class = |class: &EC2NodeClass| {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let seen = NodesOfClass::of(inputs, name, machines, steps);
        if !seen.is_used {
            return Vec::new();
        }
        let mut facts = of_images(inputs, class, name, &seen);
        facts.extend(of_selections(inputs, name, &seen));
        facts
    };
    inputs.node_classes.iter().flat_map(of_class).collect()
}

/// The nodes of a class.
struct NodesOfClass<'m, 'a> {
    nodes: Vec<(&'m Machine<'a>, &'m str)>,
    /// Types that this plan launches of it, with the labels that images are chosen by.
    launched: BTreeSet<&'m str>,
    /// Whether it has nodes or launches any.
    is_used: bool,
}

impl<'m, 'a> NodesOfClass<'m, 'a> {
    fn of(inputs: &'m Inputs<'_>, class: &str, machines: &'m [Machine<'a>], steps: &'m [Step]) -> Self {
        let pools = inputs.node_pools.iter().filter(|pool| pool.spec.template.spec.node_class_ref.name == class);
        let pools: BTreeSet<&str> = pools.filter_map(|pool| pool.metadata.name.as_deref()).collect();
        let of_class = machines.iter().filter(|machine| !machine.is_being_removed() && machine.claim.is_some());
        let nodes: Vec<_> = of_class.filter_map(|it| Some((it, *pools.get(it.node_pool()?)?))).collect();
        let launches =
            steps.iter().filter(|step| step.kind == StepKind::Create && pools.contains(step.node_pool.as_str()));
        // Whatever of the alternatives is launched is part of what is approved.
        let launched: BTreeSet<&str> = launches
            .flat_map(|step| {
                let alternatives = step.launch.iter().flat_map(|launch| launch.alternatives.iter());
                alternatives.map(|it| it.instance_type.as_str()).chain([step.instance_type.as_str()])
            })
            .collect();
        let is_used = !nodes.is_empty() || !launched.is_empty();
        Self { nodes, launched, is_used }
    }
}

/// The images of a class as far as they are known, and who says so.
struct ImagesKnown<'i> {
    images: &'i [Ami],
    is_locked: bool,
    /// What the terms find where that is not what counts.
    found: &'i [Ami],
    /// Why some are not known, as the class says.
    unknown: Option<&'i str>,
}

impl<'i> ImagesKnown<'i> {
    fn of(inputs: &'i Inputs<'_>, class: &EC2NodeClass, name: &str) -> Self {
        let applied = inputs.snapshot.node_classes.iter().find(|it| it.metadata.name.as_deref() == Some(name));
        let is_same = |applied: &&EC2NodeClass| {
            Selector::Images.is_same(&Selectors::of(&applied.spec), &Selectors::of(&class.spec))
        };
        let status = applied.filter(is_same).and_then(EC2NodeClass::status_now);
        let found = status.map(|status| status.amis.as_slice()).unwrap_or_default();
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        let unknown = conditions
            .find(|it| it.type_ == "AMIsReady" && (it.status != "True" || says_images_unknown(it)))
            .map(|it| if it.message.is_empty() { it.reason.as_str() } else { it.message.as_str() });
        match inputs.policy.images.of_class(name) {
            Some(images) => Self { images, is_locked: true, found, unknown: None },
            None => Self { images: found, is_locked: false, found: &[], unknown },
        }
    }
}

fn of_images(inputs: &Inputs<'_>, class: &EC2NodeClass, name: &str, seen: &NodesOfClass<'_, '_>) -> Vec<CloudFact> {
    let known = ImagesKnown::of(inputs, class, name);
    let terms = terms_text(Selector::Images, class);
    let field = inputs.places.of("EC2NodeClass", name, "/spec/amiSelectorTerms");
    let mut facts = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    for image in known.images {
        if ids.contains(&image.id.as_str()) {
            continue;
        }
        ids.push(&image.id);
        let variants: Vec<String> = known.images.iter().filter(|it| it.id == image.id).map(variant).collect();
        let mut fact = CloudFact {
            node_class: name.to_owned(),
            subject: format!("image {}", variants.join(", ")).trim_end().to_owned(),
            code: CloudFactCode::ImageUnchanged,
            before: Vec::new(),
            after: Some(image.id.clone()),
            nodes: 0,
            replaces: BTreeMap::new(),
            used: seen.launched.iter().any(|it| is_image_of_type(inputs, it, known.images, &image.id)),
            text: String::new(),
            definition: match known.is_locked {
                true => inputs.places.of(IMAGE_LOCK, "", &format!("{name}/{}", image.id)),
                false => field.clone(),
            },
        };
        count_nodes(inputs, &known, image, seen, &mut fact);
        fact.text = text_of_image(image, &known, &terms, &fact);
        let is_needed = fact.nodes > 0 || fact.used;
        let newer = known.found.iter().find(|it| it.requirements == image.requirements && it.id != image.id);
        if let Some(newer) = newer.filter(|_| is_needed) {
            facts.push(newer_than_lock(&fact, newer, &terms, field.clone()));
        }
        facts.extend(is_needed.then_some(fact));
    }
    facts.extend(known.unknown.map(|why| CloudFact {
        node_class: name.to_owned(),
        subject: "image".to_owned(),
        code: CloudFactCode::ImageUnknown,
        before: Vec::new(),
        after: None,
        nodes: seen.nodes.len(),
        replaces: BTreeMap::new(),
        used: false,
        text: format!("{why}; no node is replaced for what is not known"),
        definition: field,
    }));
    facts
}

/// Whether a node of this type gets the image, as far as the type alone decides.
fn is_image_of_type(inputs: &Inputs<'_>, instance_type: &str, images: &[Ami], id: &str) -> bool {
    let mut types = inputs.catalog.instance_types.iter();
    let found = types.find(|it| it.name == instance_type).and_then(|it| image_for(it, &BTreeMap::new(), images));
    found.is_some_and(|image| image.id == id)
}

/// The nodes that the image is for, and those of them that run another one.
fn count_nodes(
    inputs: &Inputs<'_>,
    known: &ImagesKnown<'_>,
    image: &Ami,
    seen: &NodesOfClass<'_, '_>,
    fact: &mut CloudFact,
) {
    let mut before: BTreeSet<&str> = BTreeSet::new();
    for (machine, node_pool) in &seen.nodes {
        let name = machine.label(keys::INSTANCE_TYPE);
        let Some(instance_type) = inputs.catalog.instance_types.iter().find(|it| Some(it.name.as_str()) == name) else {
            continue;
        };
        if image_for(instance_type, &machine.labels, known.images).is_none_or(|it| it.id != image.id) {
            continue;
        }
        fact.nodes += 1;
        let runs = live::image_of(inputs, machine).filter(|runs| *runs != image.id);
        if let Some(runs) = runs.filter(|_| drifts_by(Selector::Images, inputs, machine).is_some()) {
            before.insert(runs);
            *fact.replaces.entry((*node_pool).to_owned()).or_default() += 1;
        }
    }
    if !fact.replaces.is_empty() {
        fact.code = CloudFactCode::ImageReplacesNodes;
        fact.used = true;
    }
    fact.before = before.into_iter().map(str::to_owned).collect();
}

/// Why a machine drifts by this selector.
fn drifts_by(selector: Selector, inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<String> {
    let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool())?;
    let classes = classes(inputs, machine.claim?, pool).filter(|_| is_comparable(inputs, pool))?;
    match classes.verdict(selector, inputs, machine) {
        Verdict::Drifts(text) => Some(text),
        Verdict::AsSelected | Verdict::NotCompared | Verdict::MayDrift => None,
    }
}

fn text_of_image(image: &Ami, known: &ImagesKnown<'_>, terms: &str, fact: &CloudFact) -> String {
    let named = image.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let advice = if image.deprecated == Some(true) { ", which its owner advises against (deprecated)" } else { "" };
    let named = format!("{named}{advice}");
    let by = if known.is_locked { "locked in cutlist.lock" } else { terms };
    if fact.replaces.is_empty() {
        let nodes = if fact.nodes == 0 { "no node yet".to_owned() } else { nodes_text(fact.nodes) };
        return format!("{}{named}, {nodes}; {by}", image.id);
    }
    let keep = if known.is_locked { "" } else { ": `cutlist ami lock` holds images to what was reviewed" };
    format!(
        "{} -> {}{named}, {}; because {by}{keep}",
        some_of(&fact.before),
        image.id,
        replaced_text(fact.nodes, &fact.replaces)
    )
}

/// `replaces 41 of 44 nodes: general 38, batch 3`
fn replaced_text(nodes: usize, replaces: &BTreeMap<String, usize>) -> String {
    let replaced: usize = replaces.values().sum();
    let mut pools: Vec<(&String, &usize)> = replaces.iter().collect();
    pools.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let pools: Vec<String> = pools.into_iter().map(|(pool, count)| format!("{pool} {count}")).collect();
    format!("replaces {replaced} of {}: {}", nodes_text(nodes), pools.join(", "))
}

fn some_of(ids: &[String]) -> String {
    let mut named = ids.to_vec();
    named.truncate(IMAGES_NAMED_MAX);
    let further = ids.len() - named.len();
    let more = if further > 0 { format!(" and {further} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}

fn newer_than_lock(
    locked: &CloudFact,
    newer: &Ami,
    terms: &str,
    definition: Option<crate::plan::DefinitionPlace>,
) -> CloudFact {
    let named = newer.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    CloudFact {
        code: CloudFactCode::ImageNewerThanLock,
        before: Vec::new(),
        after: Some(newer.id.clone()),
        replaces: BTreeMap::new(),
        used: false,
        text: format!("{terms} finds {}{named} now; the locked one stays until `cutlist ami bump`", newer.id),
        definition,
        ..locked.clone()
    }
}

/// What instance types an image is for, in few words: `amd64`, `arm64 nvidia`.
fn variant(image: &Ami) -> String {
    let said = |requirement: &NodeSelectorRequirement| {
        let values = requirement.values.join(", ");
        match (requirement.key.as_str(), requirement.operator) {
            (keys::ARCHITECTURE | keys::OPERATING_SYSTEM, Operator::In) => Some(values),
            (key, Operator::In) => Some(format!("{}={values}", short_key(key))),
            (key, Operator::Exists) => Some(short_key(key).to_owned()),
            // That an image is for types without accelerators goes without saying.
            (_, Operator::DoesNotExist) => None,
            (key, operator) => Some(format!("{} {operator:?} {values}", short_key(key))),
        }
    };
    let mut words: Vec<(bool, String)> =
        image.requirements.iter().filter_map(|it| Some((it.key != keys::ARCHITECTURE, said(it)?))).collect();
    words.sort();
    words.into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

fn short_key(key: &str) -> &str {
    let name = key.rsplit('/').next().unwrap_or(key);
    name.strip_prefix("instance-").unwrap_or(name)
}

/// Nodes that go because their class selects other subnets, security groups or reservations.
fn of_selections(inputs: &Inputs<'_>, class: &str, seen: &NodesOfClass<'_, '_>) -> Vec<CloudFact> {
    let of_selector = |selector: Selector| {
        let mut replaces: BTreeMap<String, usize> = BTreeMap::new();
        let mut first = None;
        for (machine, node_pool) in &seen.nodes {
            if let Some(text) = drifts_by(selector, inputs, machine) {
                *replaces.entry((*node_pool).to_owned()).or_default() += 1;
                first.get_or_insert(text);
            }
        }
        let first = first?;
        let nodes = seen.nodes.len();
        Some(CloudFact {
            node_class: class.to_owned(),
            subject: selector.word().to_owned(),
            code: CloudFactCode::SelectionReplacesNodes,
            before: Vec::new(),
            after: None,
            nodes,
            text: format!("{}; {first}", replaced_text(nodes, &replaces)),
            replaces,
            used: true,
            definition: inputs.places.of("EC2NodeClass", class, &format!("/spec/{}", selector.field())),
        })
    };
    [Selector::SecurityGroups, Selector::Subnets, Selector::CapacityReservations]
        .into_iter()
        .filter_map(of_selector)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(requirements: serde_json::Value) -> Ami {
        serde_json::from_value(serde_json::json!({ "id": "ami-1", "requirements": requirements })).unwrap()
    }

    #[test]
    fn variants_are_said_in_few_words() {
        let of = |key: &str, operator: &str, values: &[&str]| serde_json::json!({ "key": key, "operator": operator, "values": values });
        let gpu = "karpenter.k8s.aws/instance-gpu-count";
        let arch = of(keys::ARCHITECTURE, "In", &["arm64"]);
        let cases = [
            (vec![arch.clone(), of(gpu, "DoesNotExist", &[])], "arm64"),
            (vec![of(gpu, "Exists", &[]), arch.clone()], "arm64 gpu-count"),
            (
                vec![arch, of("karpenter.k8s.aws/instance-gpu-manufacturer", "In", &["nvidia"])],
                "arm64 gpu-manufacturer=nvidia",
            ),
            (vec![], ""),
        ];
        for (requirements, expected) in cases {
            assert_eq!(variant(&image(requirements.into())), expected);
        }
    }

    #[test]
    fn pools_with_most_nodes_come_first() {
        let replaces = BTreeMap::from([("batch".to_owned(), 3), ("general".to_owned(), 38)]);
        assert_eq!(replaced_text(44, &replaces), "replaces 41 of 44 nodes: general 38, batch 3");
        let ids: Vec<String> = (0..5).map(|number| format!("ami-{number}")).collect();
        assert_eq!(some_of(&ids), "ami-0, ami-1, ami-2 and 2 more");
    }
}
