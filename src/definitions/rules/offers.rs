//! What the nodes of a NodePool have for pods, for the rules that ask which pools take a workload.

use std::collections::BTreeSet;

use serde_json::Value;

use super::references::REFERENCE;
use super::told_apart::{Taint, requirements, taints};
use super::types_left::{MATCHING, entries};
use crate::api::keys;
use crate::core::catalog::matching::Entry;
use crate::core::model::{Requirement, Requirements};
use crate::definitions::asked::{List, containers};
use crate::definitions::document::Document;
use crate::definitions::revision::Object;

/// Fields by which something else than the files says where pods go: a name of a node, another scheduler, what a RuntimeClass adds.
const SENT_ELSEWHERE: [&str; 3] = ["nodeName", "schedulerName", "runtimeClassName"];

/// A pool with what its nodes have.
pub(super) struct Offer<'p> {
    pub(super) object: &'p Object,
    pub(super) pool: &'p str,
    taints: BTreeSet<Taint<'p>>,
    pub(super) offered: Requirements,
    entries: Vec<Entry>,
}

/// What pods ask of their node.
pub(super) struct Pods<'d> {
    document: &'d Document,
    /// Where the document says what its pods are.
    spec: &'d str,
    /// A node needs to have one of them.
    terms: Vec<Term>,
}

struct Term {
    asked: Requirements,
    entries: Vec<Entry>,
}

/// Why no node of a pool takes pods. What is nearer to fitting comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Misfit<'p> {
    Taint(Taint<'p>),
    /// The labels fit, and no instance type has all of them.
    Types,
    /// The nodes have other values of the label.
    Value(String),
    /// The nodes do not have the label.
    Label(String),
}

impl<'p> Offer<'p> {
    pub(super) fn of(object: &'p Object) -> Option<Self> {
        let mut offered = requirements(object);
        let class = object.document.str(&format!("{REFERENCE}/name"));
        for (key, value) in [(keys::NODE_POOL, object.name()), (keys::EC2_NODE_CLASS, class)] {
            offered.add(key, Requirement::is_in(value));
        }
        let entries = object.asked.lists.iter().flat_map(entries).collect();
        Some(Self { object, pool: object.name()?, taints: taints(&object.document), offered, entries })
    }

    /// Whether pods may be on nodes of the pool, by labels and taints.
    pub(super) fn takes(&self, pods: &Pods<'_>) -> bool {
        self.taint(pods).is_none() && pods.terms.iter().any(|term| self.offered.refusal(&term.asked).is_none())
    }

    /// Why no node of the pool takes the pods. Of several terms it is said of the one that is nearest to fitting.
    pub(super) fn misfit(&self, pods: &Pods<'_>) -> Option<Misfit<'p>> {
        let of_term = |term: &Term| match self.offered.refusal(&term.asked) {
            Some(key) if self.offered.get(key).is_some() => Some(Misfit::Value(key.to_owned())),
            Some(key) => Some(Misfit::Label(key.to_owned())),
            None => self.leaves_no_type(term).then_some(Misfit::Types),
        };
        let of_terms = pods.terms.iter().map(of_term).min().flatten();
        of_terms.or_else(|| self.taint(pods).map(Misfit::Taint))
    }

    fn taint(&self, pods: &Pods<'_>) -> Option<Taint<'p>> {
        self.taints.iter().find(|taint| !pods.tolerate(**taint)).copied()
    }

    /// The architectures of nodes of the pool that pods may be on.
    pub(super) fn architectures(&self, pods: &Pods<'_>) -> BTreeSet<&'static str> {
        let Some(matching) = MATCHING.as_ref().filter(|_| self.taint(pods).is_none()) else { return BTreeSet::new() };
        let fitting = pods.terms.iter().filter(|term| self.offered.refusal(&term.asked).is_none());
        let of_term = |term: &Term| {
            let own = matching.relevant(&self.entries).into_iter();
            let together: Vec<&Entry> = own.chain(matching.relevant(&term.entries)).collect();
            matching.values_in(keys::ARCHITECTURE, &matching.types(&together)).collect::<Vec<&'static str>>()
        };
        fitting.flat_map(of_term).collect()
    }

    /// Whether pool and pods, of which each leaves some instance types, leave none together. Other rules speak of a pool or a pod that
    /// leaves none by itself.
    fn leaves_no_type(&self, term: &Term) -> bool {
        let Some(matching) = MATCHING.as_ref().filter(|_| !term.entries.is_empty()) else { return false };
        let (own, asked) = (matching.relevant(&self.entries), matching.relevant(&term.entries));
        let together: Vec<&Entry> = own.iter().chain(&asked).copied().collect();
        matching.types(&together).is_empty() && !matching.types(&own).is_empty() && !matching.types(&asked).is_empty()
    }
}

impl<'d> Pods<'d> {
    pub(super) fn new(document: &'d Document, spec: &'d str, lists: &[List]) -> Self {
        let term = |list: &List| Term {
            asked: Requirements::from_entries(list.written.iter().map(|it| &it.entry)),
            entries: entries(list),
        };
        Self { document, spec, terms: lists.iter().map(term).collect() }
    }

    fn tolerate(&self, taint: Taint<'_>) -> bool {
        let tolerations = format!("{}/tolerations", self.spec);
        self.document.items(&tolerations).any(|(_, it)| covers(it, taint)) || self.ask_for_resource(taint)
    }

    /// On EKS the admission plugin ExtendedResourceToleration lets pods that ask for a resource such as `nvidia.com/gpu` tolerate a taint of
    /// this name.
    fn ask_for_resource(&self, (key, _, effect): Taint<'_>) -> bool {
        let amounts = ["requests", "limits"];
        let asks = |container: &Value| {
            amounts
                .iter()
                .any(|it| container.pointer(&format!("/resources/{it}")).is_some_and(|it| it.get(key).is_some()))
        };
        let is_of_resource = key.contains('/') && effect == "NoSchedule";
        is_of_resource && containers(self.document, self.spec).iter().any(|(_, container)| asks(container))
    }
}

/// Whether the place of the pods is said in another way than by labels, or by what is not known here.
pub(super) fn is_sent_elsewhere(document: &Document, spec: &str) -> bool {
    let field =
        |name: &&str| document.value.pointer(&format!("{spec}/{name}")).is_some_and(|it| *it != "default-scheduler");
    let is_open = |text: &Value| text.as_str().is_some_and(|text| text.contains("${") || text.contains("{{"));
    let (tolerations, labels) = (format!("{spec}/tolerations"), format!("{spec}/nodeSelector"));
    SENT_ELSEWHERE.iter().any(field)
        || document.items(&tolerations).any(|(_, it)| it.as_object().is_none_or(|it| it.values().any(is_open)))
        || document.members(&labels).any(|(_, _, value)| is_open(value))
}

/// As Kubernetes holds a toleration against a taint.
fn covers(toleration: &Value, (key, value, effect): Taint<'_>) -> bool {
    let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
    let is_of = |field: &str, of_taint: &str| text(field).is_empty() || text(field) == of_taint;
    is_of("effect", effect) && is_of("key", key) && (text("operator") == "Exists" || text("value") == value)
}
