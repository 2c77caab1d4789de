//! CL0347: workloads that no pool makes a node for.
//!
//! Pods may be on nodes that no pool makes, such as those of a managed node group. So it is said of those alone that ask for what nodes of
//! Karpenter have, or for a label that pools of these files give their nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use super::offers::{Misfit, Offer, Pods, is_sent_elsewhere};
use super::one_pool::is_open;
use super::told_apart::TAINTS;
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::model::Requirement;
use crate::core::model::requirements::{is_well_known, normalized};
use crate::definitions::asked::{List, Written, lists_of_pod};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};
use crate::definitions::revision::Object;
use crate::definitions::workloads::{Choosing, Workloads};

pub static UNSERVED: Rule = Rule::pass(
    "CL0347",
    "no-pool-for-workload",
    Note,
    "Some NodePool makes nodes for the pods of a workload that asks for nodes of NodePools.",
);

pub static RULES: &[&Rule] = &[&UNSERVED];

/// Each workload that names no pool is held against all of them. Where there are more pools, nothing is said of it.
const POOLS_MAX: usize = 100;

/// More values of a label are no help.
const VALUES_SAID_MAX: usize = 5;

/// Namespaces whose workloads run on nodes that are there before the first pool makes one.
const OF_THE_CLUSTER: [&str; 2] = ["kube-system", "karpenter"];

/// How sure it is that the pods are for nodes of a pool of these files. What is surer comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// They name the pool.
    Named,
    /// No other nodes have the label.
    OfKarpenter,
    /// Pools of these files give the label to their nodes; others may as well.
    OfPools,
}

/// The pools, as far as workloads are held against them.
struct Pools<'p> {
    offers: Vec<Offer<'p>>,
    by_name: BTreeMap<&'p str, Vec<usize>>,
    /// Names of pools of which not all is known.
    unknown: BTreeSet<&'p str>,
    /// Whether these are all pools that there may be.
    is_all: bool,
    /// Labels that some pool gives its nodes.
    labels: BTreeSet<&'p str>,
}

/// Workloads, held against all pools of the files, of whatever cluster they are. `is_all_known` says that nothing that is not read may bring
/// more pools.
pub fn of_workloads(workloads: &Workloads, objects: &[Object], is_all_known: bool) -> Vec<Finding> {
    if workloads.choosing().is_empty() && !objects.iter().any(|it| it.kind == Kind::PodTemplate) {
        return Vec::new();
    }
    let mut pools = Pools::of(objects);
    let mut misread = workloads.misread_pools().iter().map(String::as_str);
    pools.is_all &= is_all_known && misread.all(|name| pools.by_name.contains_key(name));
    let templates = objects.iter().filter(|it| it.kind == Kind::PodTemplate && !it.staged);
    let spec = "/template/spec";
    let of_template =
        |it: &Object| Choosing { document: it.document.clone(), spec, lists: lists_of_pod(&it.document, spec) };
    let templates: Vec<Choosing> = templates.map(of_template).collect();
    let choosing = workloads.choosing().iter().filter(|it| !is_owned(&it.document)).chain(&templates);
    choosing.filter_map(|it| unserved(it, &pools)).collect()
}

/// Whether somebody else made it, as the pods of a snapshot: what is said of it stands where its owner is defined.
fn is_owned(document: &Document) -> bool {
    document.value.pointer("/metadata/ownerReferences").is_some()
}

impl<'p> Pools<'p> {
    fn of(objects: &'p [Object]) -> Self {
        let all = || objects.iter().filter(|object| object.kind == Kind::NodePool);
        let is_unknown = |pool: &&Object| {
            let document = &pool.document;
            is_open(document) || !pool.usable || is_of_another_provider(document) || is_of_auto_mode(document)
        };
        let unknown: BTreeSet<&str> = all().filter(is_unknown).map(|it| it.name().unwrap_or_default()).collect();
        let offers: Vec<Offer<'_>> = all().filter(|it| !is_unknown(it)).filter_map(Offer::of).collect();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, offer) in offers.iter().enumerate() {
            by_name.entry(offer.pool).or_default().push(index);
        }
        let written = offers.iter().flat_map(|it| &it.object.asked.lists).flat_map(|list| &list.written);
        let own = written.map(|it| normalized(&it.entry.key)).filter(|key| !is_well_known(key));
        let labels = own.collect();
        Self { is_all: unknown.is_empty() && offers.len() <= POOLS_MAX, offers, by_name, unknown, labels }
    }

    /// Those that pods may be for. `None` where some of them are not known.
    fn asked(&self, evidence: Evidence, lists: &[List]) -> Option<Vec<&Offer<'p>>> {
        if evidence != Evidence::Named {
            return self.is_all.then(|| self.offers.iter().collect());
        }
        let named = lists.iter().flat_map(|list| &list.written).filter(|it| is_name(it));
        let names: BTreeSet<&str> = named.flat_map(|it| &it.entry.values).map(String::as_str).collect();
        let found = names.iter().map(|name| {
            // Another rule speaks of a pool that is not there.
            self.by_name.get(name).filter(|_| !self.unknown.contains(name)).filter(|it| it.len() <= POOLS_MAX)
        });
        let found: Option<Vec<&Vec<usize>>> = found.collect();
        Some(found?.into_iter().flatten().filter_map(|index| self.offers.get(*index)).collect())
    }

    /// How sure it is that pods that ask for this are for one of the pools.
    fn evidence(&self, written: &Written) -> Option<Evidence> {
        let key = normalized(&written.entry.key);
        match written.entry.operator {
            Operator::NotIn | Operator::DoesNotExist => None,
            _ if is_name(written) => Some(Evidence::Named),
            _ if is_of_karpenter(key) => is_well_known(key).then_some(Evidence::OfKarpenter),
            _ => self.labels.contains(key).then_some(Evidence::OfPools),
        }
    }
}

fn is_name(written: &Written) -> bool {
    written.entry.key == keys::NODE_POOL && written.entry.operator == Operator::In
}

/// Whether the label is in a domain of Karpenter.
fn is_of_karpenter(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    domain.ends_with("karpenter.sh") || domain.ends_with("karpenter.k8s.aws")
}

/// What tells the most surely whose nodes the pods are for.
fn surest<'l>(list: &'l List, pools: &Pools<'_>) -> Option<(Evidence, &'l Written)> {
    let of_each = list.written.iter().filter_map(|it| Some((pools.evidence(it)?, it)));
    of_each.min_by_key(|(evidence, _)| *evidence)
}

fn unserved(workload: &Choosing, pools: &Pools<'_>) -> Option<Finding> {
    let Choosing { document, spec, lists } = workload;
    let of_lists: Vec<(Evidence, &Written)> = lists.iter().map(|it| surest(it, pools)).collect::<Option<_>>()?;
    let evidence = of_lists.iter().map(|(evidence, _)| *evidence).max()?;
    let (_, at) = of_lists.first()?;
    if is_sent_elsewhere(document, spec) || (evidence == Evidence::OfPools && is_of_the_cluster(document)) {
        return None;
    }
    let lists: Vec<List> = lists.iter().map(|list| counting(list, evidence, pools)).collect::<Option<_>>()?;
    let asked = pools.asked(evidence, &lists)?;
    let pods = Pods::new(document, spec, &lists);
    let misfits: Option<Vec<(Misfit<'_>, &Offer<'_>)>> =
        asked.into_iter().map(|offer| Some((offer.misfit(&pods)?, offer))).collect();
    let misfits = misfits?;
    let (misfit, nearest) = misfits.iter().min_by_key(|(misfit, _)| misfit)?;
    let said = (misfit, *nearest, misfits.len().saturating_sub(1));
    Some(finding(document, (at, &lists), said, evidence, pools))
}

/// What runs on every node, and what the cluster needs before a pool makes one, has labels in common with nodes of others.
fn is_of_the_cluster(document: &Document) -> bool {
    let namespace = document.str("/metadata/namespace").unwrap_or_default();
    document.str("/kind") == Some("DaemonSet") || OF_THE_CLUSTER.contains(&namespace)
}

/// The requirements that tell pools apart. `None` where one of them may be for nodes of others, or is one that another rule speaks of.
fn counting(list: &List, evidence: Evidence, pools: &Pools<'_>) -> Option<List> {
    let mut written = Vec::new();
    for it in &list.written {
        let key = normalized(&it.entry.key);
        let is_known = is_well_known(key) || pools.labels.contains(key);
        let is_strange = key == keys::HOSTNAME || (is_of_karpenter(key) && !is_known);
        let may_be_elsewhere = !is_known && evidence == Evidence::OfPools;
        if is_strange || may_be_elsewhere {
            return None;
        }
        // Programs on the nodes give them labels of their domains, such as `nvidia.com/gpu.present`.
        if is_known || !key.contains('/') {
            written.push(it.clone());
        }
    }
    Some(List { pointer: list.pointer.clone(), written })
}

/// `said` is why the nearest pool does not take the pods, that pool, and the number of the others.
fn finding(
    document: &Document,
    (surest, lists): (&Written, &[List]),
    (misfit, nearest, others): (&Misfit<'_>, &Offer<'_>, usize),
    evidence: Evidence,
    pools: &Pools<'_>,
) -> Finding {
    let pool = nearest.pool;
    let (at, why) = match misfit {
        Misfit::Taint(taint) => {
            (surest, format!("`{pool}` has the taint `{}`, which they do not tolerate", shown(*taint)))
        }
        Misfit::Types => (surest, format!("no instance type of `{pool}` has all that they ask for")),
        Misfit::Value(key) => (of_key(lists, key).unwrap_or(surest), format!("`{key}` is another one on `{pool}`")),
        Misfit::Label(key) => {
            (of_key(lists, key).unwrap_or(surest), format!("nodes of `{pool}` do not have the label `{key}`"))
        }
    };
    let others = match others {
        0 => String::new(),
        1 => ", and the other one does not fit either".to_owned(),
        count => format!(", and {count} others do not fit either"),
    };
    let message = format!("no NodePool makes a node for its pods: {why}{others}");
    let place = at.place((at.entry.operator == Operator::In).then_some(0));
    let finding = Finding::at(&UNSERVED, document, &place, FindingPlace::Value, message);
    let related =
        |finding: Finding, pointer: &str, what: &str| finding.related(&nearest.object.document, pointer, what);
    match misfit {
        Misfit::Taint((key, value, effect)) => {
            let toleration = match value.is_empty() {
                true => format!("{{ key: {key}, operator: Exists, effect: {effect} }}"),
                false => format!("{{ key: {key}, value: \"{value}\", effect: {effect} }}"),
            };
            related(finding, TAINTS, "taints of the pool").hint(format!("let them tolerate it: `{toleration}`"))
        }
        // Which of them was meant is a guess that `--fix` must not make.
        Misfit::Value(key) if pools.labels.contains(key.as_str()) => {
            let values: BTreeSet<&str> = pools.offers.iter().flat_map(|it| values_of(it, key)).collect();
            let some: Vec<String> = values.iter().take(VALUES_SAID_MAX).map(|it| format!("`{it}`")).collect();
            let more = if values.len() > VALUES_SAID_MAX { " and more" } else { "" };
            let hint = format!("pools have {}{more}; {}", some.join(", "), advice(evidence));
            related(finding, "/metadata/name", "the pool").hint(hint)
        }
        _ => related(finding, "/metadata/name", "the pool").hint(advice(evidence)),
    }
}

fn advice(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Named | Evidence::OfKarpenter => {
            "the pods stay pending: change what they ask for, or what the pool allows"
        }
        Evidence::OfPools => "where the cluster has no other nodes with such labels either, the pods stay pending",
    }
}

fn of_key<'l>(lists: &'l [List], key: &str) -> Option<&'l Written> {
    lists.iter().flat_map(|list| &list.written).find(|it| normalized(&it.entry.key) == key)
}

/// The values that nodes of the pool may have for a label, where these are listed.
fn values_of<'o>(offer: &'o Offer<'_>, key: &str) -> impl Iterator<Item = &'o str> {
    let values = offer.offered.get(key).and_then(Requirement::values);
    values.into_iter().flatten().map(String::as_str)
}

/// As kubectl shows a taint: `gpu=true:NoSchedule`.
fn shown((key, value, effect): (&str, &str, &str)) -> String {
    match value.is_empty() {
        true => format!("{key}:{effect}"),
        false => format!("{key}={value}:{effect}"),
    }
}
