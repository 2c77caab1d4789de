//! CL0325 to CL0349: what requirements say of instance types, held against the catalog in this binary. It may be older than what EC2
//! sells, so nothing here is an error.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Rule;
use super::auto_mode::{is_of_another_provider, is_of_auto_mode};
use super::zones::meant_by;
use super::{limits, min_values, spot};
use crate::api::keys;
use crate::api::node_pool::{CLASS_GROUP, CLASS_KIND, NodePool, NodeSelectorRequirement, Operator};
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::catalog::matching::{Entry, Matching};
use crate::core::catalog::regions::{self, Region, SaidBy};
use crate::core::catalog::values::Fault;
use crate::core::catalog::{Catalog, InstanceType};
use crate::core::model::Requirement;
use crate::core::model::requirements::normalized;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static VALUE: Rule = Rule::pass(
    "CL0325",
    "value-of-no-instance-type",
    Warning,
    "Values that requirements and selectors name are those of some instance type.",
);
pub static BOUND: Rule = Rule::pass(
    "CL0326",
    "bound-beyond-instance-types",
    Warning,
    "Gt, Lt, Gte, Lte and DoesNotExist leave some instance type.",
);
pub static UNIT: Rule = Rule::pass(
    "CL0327",
    "bound-in-another-unit",
    Warning,
    "Bounds are in the unit of the label, and leave out some instance type.",
);
pub static TOGETHER: Rule =
    Rule::pass("CL0328", "no-instance-type-for-all", Warning, "Some instance type matches all requirements together.");
pub static ZONE: Rule = Rule::revision(
    "CL0329",
    "zone-of-another-region",
    Warning,
    "Zones are in the region that is planned for.",
    zone_of_another_region,
);
pub static PRICE: Rule = Rule::pass(
    "CL0330",
    "instance-types-without-price",
    Note,
    "Some instance type that matches the requirements of a pool has a price in the catalog.",
);

pub static RULES: &[&Rule] = &[&VALUE, &BOUND, &UNIT, &TOGETHER, &ZONE, &PRICE];

/// Read once: labels of instance types are the same in every region.
static CATALOG: LazyLock<Option<Catalog>> = LazyLock::new(|| Catalog::built_in_anywhere().ok());
pub(in crate::definitions) static MATCHING: LazyLock<Option<Matching<'static>>> =
    LazyLock::new(|| Some(matching_of(CATALOG.as_ref()?)));

/// Of which operating system nodes are, their class decides.
pub(super) const OF_CLASS: [&str; 2] = [keys::OPERATING_SYSTEM, keys::WINDOWS_BUILD];

/// Places have a rule of their own, which knows the region.
pub(super) const PLACES: [&str; 3] = [keys::ZONE, keys::ZONE_ID, keys::REGION];

/// What [`super::node_pool::UNKNOWN_VALUE`] says of pools.
const SAID_OF_POOLS: [&str; 2] = [keys::ARCHITECTURE, keys::CAPACITY_TYPE];

fn matching_of(catalog: &Catalog) -> Matching<'_> {
    Matching::new(&catalog.instance_types, &catalog.region)
}

fn is_list(operator: Operator) -> bool {
    matches!(operator, Operator::In | Operator::NotIn)
}

/// One requirement, or one label of a selector, and where it stands.
#[derive(Clone, Debug)]
pub struct Written {
    pub(super) pointer: String,
    pub(super) entry: NodeSelectorRequirement,
    /// Whether it is a label, whose value stands at the pointer itself.
    pub(super) is_label: bool,
}

impl Written {
    pub(super) fn place(&self, value: Option<usize>) -> String {
        match value {
            _ if self.is_label => self.pointer.clone(),
            Some(index) => format!("{}/values/{index}", self.pointer),
            None => format!("{}/operator", self.pointer),
        }
    }
}

/// Requirements that count together.
#[derive(Clone, Debug)]
pub struct List {
    /// What the list is part of, for what concerns all of it.
    pub(super) pointer: String,
    pub(super) written: Vec<Written>,
}

/// What one object asks of instance types and places: worked out once, and kept with the object for all rules about it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub(super) lists: Vec<List>,
    /// Of a pool that names places, what it says of them.
    places: Option<NodePool>,
}

impl Asked {
    pub fn of(kind: Kind, document: &Document) -> Self {
        let lists = lists(kind, document);
        let places = if kind == Kind::NodePool && names_places(document) { with_places_alone(document) } else { None };
        Self { lists, places }
    }
}

/// Lists of requirements of one object: of a pool and an overlay one, of a pod its selector with each term of its affinity.
fn lists(kind: Kind, document: &Document) -> Vec<List> {
    match kind {
        Kind::NodePool => {
            // What is sold there, and labels of its nodes, nobody knows here.
            if is_of_another_provider(document) {
                return Vec::new();
            }
            let pointer = REQUIREMENTS;
            let mut written = labels(document, LABELS);
            written.extend(requirements(document, pointer));
            if is_of_auto_mode(document) {
                written.iter_mut().for_each(as_of_karpenter);
            }
            vec![List { pointer: pointer.to_owned(), written }]
        }
        Kind::NodeOverlay => {
            let pointer = "/spec/requirements";
            vec![List { pointer: pointer.to_owned(), written: requirements(document, pointer) }]
        }
        Kind::PodTemplate => lists_of_pod(document, "/template/spec"),
        _ => Vec::new(),
    }
}

/// The labels of EKS Auto Mode are Karpenter's under another name.
fn as_of_karpenter(written: &mut Written) {
    if let Some(name) = written.entry.key.strip_prefix(keys::AUTO_MODE_PREFIX) {
        written.entry.key = format!("{AWS_PREFIX}{name}");
    }
}

pub(super) fn lists_of_pod(document: &Document, spec: &str) -> Vec<List> {
    let selector = || labels(document, &format!("{spec}/nodeSelector"));
    let affinity = format!("{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let terms: Vec<String> = document.items(&format!("{affinity}/nodeSelectorTerms")).map(|(term, _)| term).collect();
    let of_term = |term: &String| {
        let pointer = format!("{term}/matchExpressions");
        let mut written = selector();
        written.extend(requirements(document, &pointer));
        List { pointer, written }
    };
    match terms.is_empty() {
        true => vec![List { pointer: format!("{spec}/nodeSelector"), written: selector() }],
        false => terms.iter().map(of_term).collect(),
    }
}

/// Those that can be read and hold no variable: of the others the schema speaks.
fn requirements(document: &Document, pointer: &str) -> Vec<Written> {
    let read = |(pointer, entry): (String, &Value)| {
        let entry: NodeSelectorRequirement = serde_json::from_value(entry.clone()).ok()?;
        let is_open = std::iter::once(&entry.key).chain(&entry.values).any(|text| text.contains("${"));
        (!is_open).then_some(Written { pointer, entry, is_label: false })
    };
    document.items(pointer).filter_map(read).collect()
}

fn labels(document: &Document, pointer: &str) -> Vec<Written> {
    let read = |(pointer, key, value): (String, &str, &Value)| {
        let value = value.as_str().filter(|value| !value.contains("${"))?;
        let (key, values) = (key.to_owned(), vec![value.to_owned()]);
        let entry = NodeSelectorRequirement { key, operator: Operator::In, values, min_values: None };
        Some(Written { pointer, entry, is_label: true })
    };
    document.members(pointer).filter_map(read).collect()
}

const KINDS: [Kind; 3] = [Kind::NodePool, Kind::NodeOverlay, Kind::PodTemplate];

pub(super) fn objects<'r>(revision: &'r Revision<'_>) -> impl Iterator<Item = &'r Object> {
    KINDS.into_iter().flat_map(|kind| revision.of(kind))
}

/// What one object asks of instance types, held against the catalog. Its requirements are read once for all rules about them.
/// O(requirements x instance types).
pub fn check(kind: Kind, document: &Document, asked: &Asked) -> Vec<Finding> {
    let Some(matching) = MATCHING.as_ref().filter(|_| KINDS.contains(&kind)) else { return Vec::new() };
    let lists = &asked.lists;
    let written = lists.iter().flat_map(|list| &list.written);
    let mut findings: Vec<Finding> = written.flat_map(|written| faults(document, kind, written, matching)).collect();
    let types: Vec<TypesLeft<'_>> = lists.iter().map(|list| TypesLeft::of(list, matching)).collect();
    findings.extend(types.iter().filter_map(|types| together(document, kind, types, matching)));
    if kind == Kind::NodePool {
        for types in &types {
            findings.extend(without_price(document, types));
            findings.extend(min_values::too_few(document, types, matching));
            findings.extend(limits::below_all(document, types));
            findings.extend(spot::few_types(document, types));
        }
    }
    findings
}

/// What counts of a list for types alone: places depend on the region, and what a class decides is not of the type.
pub(super) struct TypesLeft<'l> {
    pub(super) list: &'l List,
    pub(super) entries: Vec<Entry>,
    pub(super) types: Vec<&'static InstanceType>,
}

impl<'l> TypesLeft<'l> {
    fn of(list: &'l List, matching: &Matching<'static>) -> Self {
        let entries = entries(list);
        let types = matching.types(&matching.relevant(&entries)).collect();
        Self { list, entries, types }
    }
}

/// What a single requirement gets wrong.
fn faults(document: &Document, kind: Kind, written: &Written, matching: &Matching<'_>) -> Vec<Finding> {
    let key = normalized(&written.entry.key);
    let said_elsewhere = OF_CLASS.contains(&key)
        || PLACES.contains(&key)
        || (kind == Kind::NodePool && !written.is_label && SAID_OF_POOLS.contains(&key));
    if said_elsewhere {
        return Vec::new();
    }
    // A capacity type that is reserved is in no catalog, but in the account.
    let is_reserved = |fault: &Fault| {
        let value = fault.value.and_then(|index| written.entry.values.get(index));
        key == keys::CAPACITY_TYPE && value.is_some_and(|value| value == keys::RESERVED)
    };
    let faults = matching.values.faults(key, written.entry.operator, &written.entry.values);
    let finding = |fault: Fault| {
        let rule: &'static Rule = match (is_list(written.entry.operator), fault.matches_nothing) {
            (true, _) => fault.value.map(|_| &VALUE)?,
            (false, true) => &BOUND,
            (false, false) => &UNIT,
        };
        let place = written.place(fault.value);
        Some(Finding::at(rule, document, &place, Place::Value, fault.message).maybe_hint(fault.hint))
    };
    faults.into_iter().filter(|fault| !is_reserved(fault)).filter_map(finding).collect()
}

/// Of a workload beside the definitions: what its pods ask for on labels that only nodes of EC2 have.
pub fn of_workload(document: &Document) -> Vec<Finding> {
    let spec = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/template/spec", "/spec"];
    let is_pods =
        |spec: &&'static str| document.value.pointer(&format!("{spec}/containers")).is_some_and(Value::is_array);
    let Some((spec, matching)) = spec.into_iter().find(is_pods).zip(MATCHING.as_ref()) else { return Vec::new() };
    let is_of_ec2 = |written: &&Written| {
        let key = normalized(&written.entry.key);
        key.starts_with(AWS_PREFIX) || matches!(key, keys::INSTANCE_TYPE | keys::CAPACITY_TYPE)
    };
    let lists = lists_of_pod(document, spec);
    let written = lists.iter().flat_map(|list| &list.written).filter(is_of_ec2);
    let mut findings: Vec<Finding> =
        written.flat_map(|written| faults(document, Kind::PodTemplate, written, matching)).collect();
    findings.retain(|finding| finding.rule.code != UNIT.code);
    findings
}

/// Requirements that no type meets together, where each alone some type meets: the others have been said.
fn together(document: &Document, kind: Kind, types: &TypesLeft<'_>, matching: &Matching<'_>) -> Option<Finding> {
    let TypesLeft { list, entries, types } = types;
    if !types.is_empty() {
        return None;
    }
    let unmatched = matching.unmatched(entries).filter(|it| it.match_nothing.is_empty())?;
    let keys: Vec<&str> = unmatched.exclude_each_other.iter().map(|it| it.key.as_str()).collect();
    let last = list.written.iter().rfind(|it| keys.contains(&normalized(&it.entry.key)))?;
    // That requirements on one key exclude each other is an error of its own.
    let is_error = || keys.windows(2).all(|pair| pair[0] == pair[1]) && excludes_all(list, keys[0]);
    if kind == Kind::NodePool && is_error() {
        return None;
    }
    let place = if last.is_label { last.pointer.clone() } else { format!("{}/key", last.pointer) };
    let finding = Finding::at(&TOGETHER, document, &place, Place::Value, unmatched.together_text());
    Some(finding.hint(match kind {
        Kind::NodePool => "the pool makes no node, unless the catalog is older than the type that is meant",
        Kind::NodeOverlay => "the overlay changes nothing, unless the catalog is older than the type that is meant",
        _ => "no new node takes the pod, unless the catalog is older than the type that is meant",
    }))
}

/// Whether what a list says of one key leaves no value, whichever types there are.
fn excludes_all(list: &List, key: &str) -> bool {
    let of_key = list.written.iter().map(|it| &it.entry).filter(|entry| normalized(&entry.key) == key);
    let allowed = of_key.map(|entry| Requirement::new(entry.operator, entry.values.clone()));
    allowed.reduce(|one, other| one.intersection(&other)).is_some_and(|allowed| allowed.is_contradiction())
}

pub(super) fn entries(list: &List) -> Vec<Entry> {
    let entries = list.written.iter().map(|written| Entry::new(&written.entry));
    entries.filter(|entry| !OF_CLASS.contains(&entry.key.as_str()) && !PLACES.contains(&entry.key.as_str())).collect()
}

/// A pool that only types without a price would serve.
fn without_price(document: &Document, types: &TypesLeft<'_>) -> Option<Finding> {
    let TypesLeft { list, types, .. } = types;
    let catalog = CATALOG.as_ref().filter(|_| !list.written.is_empty())?;
    let first = &types.first()?.name;
    if !types.iter().all(|it| it.offerings.iter().all(|offering| !offering.available)) {
        return None;
    }
    let message =
        format!("only instance types without a price in the catalog of {} match, such as `{first}`", catalog.date);
    let finding = Finding::at(&PRICE, document, &list.pointer, Place::Key, message);
    Some(finding.hint("no plan chooses them: give a catalog that has their prices with --catalog"))
}

/// The region that definitions are for, by what they say themselves.
pub(super) fn region(revision: &Revision<'_>) -> Region {
    let settings = revision.of(Kind::Settings).find_map(|it| it.document.str("/spec/region"));
    let pools = revision.of(Kind::NodePool).filter_map(|pool| pool.asked.places.as_ref());
    regions::find(settings, [], pools)
}

const REQUIREMENTS: &str = "/spec/template/spec/requirements";
const LABELS: &str = "/spec/template/metadata/labels";

fn names_places(pool: &Document) -> bool {
    let is_place = |key: &str| PLACES.contains(&normalized(key));
    let key = |entry: &Value| entry.get("key").and_then(Value::as_str).is_some_and(is_place);
    pool.items(REQUIREMENTS).any(|(_, entry)| key(entry)) || pool.members(LABELS).any(|(_, key, _)| is_place(key))
}

/// A pool with what its requirements and labels say: a mistake elsewhere in it makes nothing of its zones.
fn with_places_alone(pool: &Document) -> Option<NodePool> {
    let entries = pool.items(REQUIREMENTS).map(|(_, entry)| entry);
    let entries: Vec<&Value> = entries.filter(|entry| NodeSelectorRequirement::deserialize(*entry).is_ok()).collect();
    let labels = pool.members(LABELS).filter(|(.., value)| value.is_string());
    let labels: Map<String, Value> = labels.map(|(_, key, value)| (key.to_owned(), value.clone())).collect();
    let class = json!({ "group": CLASS_GROUP, "kind": CLASS_KIND, "name": "any" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "requirements": entries, "nodeClassRef": class } });
    let value = json!({
        "apiVersion": Kind::NodePool.api_version(),
        "kind": Kind::NodePool.name(),
        "metadata": {},
        "spec": { "template": template },
    });
    NodePool::deserialize(value).ok()
}

fn zone_of_another_region(revision: &Revision<'_>) -> Vec<Finding> {
    let region = region(revision);
    let mut findings = Vec::new();
    for object in objects(revision) {
        for list in &object.asked.lists {
            let places = list
                .written
                .iter()
                .filter(|it| it.entry.operator == Operator::In && PLACES.contains(&normalized(&it.entry.key)));
            for written in places {
                findings.extend(elsewhere(&object.document, written, &region));
            }
        }
    }
    findings
}

fn elsewhere(document: &Document, written: &Written, region: &Region) -> Vec<Finding> {
    let of_region = normalized(&written.entry.key) == keys::REGION;
    let mut findings = Vec::new();
    let meant = meant_by(normalized(&written.entry.key));
    // What is no place, or one of another kind, has a rule of its own.
    let is_meant = |value: &str| regions::place(value) == meant || of_region && regions::has_form_of_region(value);
    for (index, value) in written.entry.values.iter().enumerate().filter(|(_, value)| is_meant(value)) {
        let place = written.place(Some(index));
        let (name, is_zone) = match regions::of_zone(value) {
            _ if of_region => (value.as_str(), false),
            Some(name) => (name, true),
            None => continue,
        };
        let message = match (name == region.name, region.said_by) {
            (true, _) if is_zone && !of_region && regions::is_unknown_zone(value) => {
                let message = format!("the built-in catalog has no zone {value} in {name}: no plan makes a node there");
                findings.push(Finding::at(&ZONE, document, &place, Place::Value, message));
                continue;
            }
            (true, _) => continue,
            (false, SaidBy::Settings) => format!("{value} is not in {}, the region of cutlist.yaml", region.name),
            (false, SaidBy::NodePools) => {
                format!("{value} is not in {}, where the zones of the NodePools are", region.name)
            }
            // One region that the catalog does not have, or several.
            (false, SaidBy::Nobody | SaidBy::Nodes) => {
                format!("{value} is not in {}, which is only assumed", region.name)
            }
        };
        let hint = match regions::is_known(name) {
            true => format!("set spec.region in cutlist.yaml to the region of the cluster, such as {name}"),
            false => format!("the built-in catalog has no region {name}: give a catalog of it with --catalog"),
        };
        findings.push(Finding::at(&ZONE, document, &place, Place::Value, message).hint(hint));
    }
    findings
}
