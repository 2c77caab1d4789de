//! CL0338: images of a class that are for no instance type of a pool, and of workloads that are not for their nodes, by the architecture that
//! their names tell.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Rule;
use super::offers::{Offer, Pods, is_sent_elsewhere};
use super::one_pool::is_open;
use super::references::{REFERENCE, classes};
use super::types_left::{MATCHING, entries};
use crate::api::keys;
use crate::core::catalog::matching::Entry;
use crate::core::model::Requirements;
use crate::definitions::architectures;
use crate::definitions::asked::containers;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};
use crate::definitions::revision::{Object, Revision};
use crate::definitions::workloads::{Choosing, Workloads};

pub static OTHER_ARCHITECTURE: Rule = Rule::revision(
    "CL0338",
    "image-of-another-architecture",
    Warning,
    "The images of a class, and those of workloads, are for the architecture of their nodes, as far as names tell.",
    other_architecture,
);

pub static RULES: &[&Rule] = &[&OTHER_ARCHITECTURE];

const TERMS: &str = "/spec/amiSelectorTerms";

fn other_architecture(revision: &Revision<'_>) -> Vec<Finding> {
    let classes = classes(revision);
    let mut findings = Vec::new();
    for pool in revision.of(Kind::NodePool).filter(|pool| !is_open(&pool.document)) {
        let at = format!("{REFERENCE}/name");
        let class = pool.document.str(&at).and_then(|name| classes.get(name));
        let Some((class, images)) = class.and_then(|class| Some((class, of_images(&class.document)?))) else {
            continue;
        };
        let types = of_types(pool);
        if types.is_empty() || types.intersection(&images).next().is_some() {
            continue;
        }
        let said = |all: &BTreeSet<&str>| all.iter().copied().collect::<Vec<_>>().join(" and ");
        let message = format!(
            "all images of this class are for {} by their names, and the instance types that match are {}: nothing is launched",
            said(&images),
            said(&types)
        );
        let finding = Finding::at(&OTHER_ARCHITECTURE, &pool.document, &at, FindingPlace::Value, message);
        findings.push(finding.related(&class.document, TERMS, "images of the class").hint(format!(
            "add a term for images of {}, or require `{}: {}`",
            said(&types),
            keys::ARCHITECTURE,
            said(&images)
        )));
    }
    findings
}

/// The architectures of all images, as the label has them; `None` where some term does not tell.
fn of_images(class: &Document) -> Option<BTreeSet<&'static str>> {
    let architectures: BTreeSet<&str> = class.items(TERMS).map(|(_, term)| of_term(term)).collect::<Option<_>>()?;
    (!architectures.is_empty() && !is_open(class)).then_some(architectures)
}

fn of_term(term: &Value) -> Option<&'static str> {
    let name = ["name", "ssmParameter"].into_iter().find_map(|field| term.get(field)?.as_str())?;
    architectures::of_machine_image(name)
}

/// The architectures of the instance types that match what the pool requires.
fn of_types(pool: &Object) -> BTreeSet<&str> {
    let entries: Vec<Entry> = pool.asked.lists.iter().flat_map(entries).collect();
    let Some(matching) = MATCHING.as_ref() else { return BTreeSet::new() };
    let relevant = matching.relevant(&entries);
    matching.values_in(keys::ARCHITECTURE, &matching.types(&relevant)).collect()
}

/// At most this many pools are asked whether they take a workload. Where there are more, most take it.
const POOLS_MAX: usize = 100;

/// Workloads with an image for another architecture than that of nodes that they may be on.
pub fn of_workloads(workloads: &Workloads, objects: &[Object]) -> Vec<Finding> {
    if workloads.of_one_architecture().is_empty() {
        return Vec::new();
    }
    let is_known = |pool: &&Object| {
        let document = &pool.document;
        let is_whole = pool.kind == Kind::NodePool && pool.usable && !pool.staged && !is_open(document);
        is_whole && !is_of_another_provider(document) && !is_of_auto_mode(document)
    };
    let offers: Vec<Offer<'_>> = objects.iter().filter(is_known).filter_map(Offer::of).take(POOLS_MAX).collect();
    let workloads = workloads.of_one_architecture().iter().filter(|it| !is_sent_elsewhere(&it.document, it.spec));
    workloads.filter_map(|workload| of_workload(workload, &offers)).collect()
}

fn of_workload(workload: &Choosing, offers: &[Offer<'_>]) -> Option<Finding> {
    let Choosing { document, spec, lists } = workload;
    let (pointer, image) = containers(document, spec).into_iter().find_map(|(pointer, container)| {
        let image = container.get("image").and_then(Value::as_str).and_then(architectures::of_container_image)?;
        Some((format!("{pointer}/image"), image))
    })?;
    let at = |message: String| Finding::at(&OTHER_ARCHITECTURE, document, &pointer, FindingPlace::Value, message);
    let asked = lists.iter().map(|list| Requirements::from_entries(list.written.iter().map(|it| &it.entry)));
    let asked: Vec<Requirements> = asked.collect();
    let of_lists: Vec<_> = asked.iter().filter_map(|it| it.get(keys::ARCHITECTURE)).collect();
    if !of_lists.is_empty() {
        let is_other = of_lists.len() == asked.len() && of_lists.iter().all(|it| !it.allows(image));
        let message =
            format!("the image is for {image} by its name, and its pods ask for nodes that are not: they do not start");
        return is_other
            .then(|| at(message).hint(format!("ask for `{}: {image}`, or take another image", keys::ARCHITECTURE)));
    }
    let pods = Pods::new(document, spec, lists);
    let other = offers.iter().find_map(|offer| {
        let mut others = offer.architectures(&pods).into_iter().filter(|it| *it != image);
        Some((offer, others.next()?))
    });
    let (offer, other) = other?;
    let message = format!(
        "the image is for {image} by its name, and its pods may be on {other} nodes of NodePool `{}`, where they do not start",
        offer.pool
    );
    let mut finding = at(message);
    // The name may tell less than the image has.
    finding.severity = Note;
    let finding = finding.related(&offer.object.document, "/metadata/name", "the pool");
    Some(finding.hint(format!("ask for nodes that fit: `nodeSelector: {{ {}: {image} }}`", keys::ARCHITECTURE)))
}
