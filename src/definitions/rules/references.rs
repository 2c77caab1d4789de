//! CL0600 to CL0649: what definitions say of each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use crate::api::kustomization::folder;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};
use crate::definitions::revision::{Object, Revision};
use crate::definitions::suggest;
use crate::definitions::workloads::{AskedPool, Workloads, asked_pools};

pub const REFERENCE: &str = "/spec/template/spec/nodeClassRef";
const CLASS_GROUP: &str = "karpenter.k8s.aws";

pub static DUPLICATE: Rule =
    Rule::revision("CL0600", "duplicate-definition", Error, "A kind and name is defined once.", duplicate);
pub static CLASS_MISSING: Rule =
    Rule::revision("CL0601", "class-missing", Warning, "The class that a pool refers to is defined.", class_missing);
pub static CLASS_KIND: Rule = Rule::revision(
    "CL0602",
    "class-kind",
    Error,
    "A pool refers to an EC2NodeClass of the group karpenter.k8s.aws, or to a class that is no slip for it.",
    class_kind,
);
pub static CLASS_UNUSED: Rule =
    Rule::revision("CL0603", "class-unused", Note, "Each class has a pool that uses it.", class_unused);
pub static POOL_MISSING: Rule = Rule::revision(
    "CL0604",
    "pool-missing",
    Warning,
    "The pools that a disruption budget or a workload names are defined.",
    pool_missing,
);
pub static RULES: &[&Rule] = &[&DUPLICATE, &CLASS_MISSING, &CLASS_KIND, &CLASS_UNUSED, &POOL_MISSING];

/// Each further definition of a name.
fn duplicate(revision: &Revision<'_>) -> Vec<Finding> {
    let mut by_name: BTreeMap<(Kind, &str, &str), Vec<&Object>> = BTreeMap::new();
    for object in revision.objects.iter().filter(|object| !object.staged) {
        // There is one document of settings and one of scenarios, whatever its name.
        if let Some(name) = if object.kind.is_object() { object.name() } else { Some("") } {
            by_name.entry((object.kind, object.namespace(), name)).or_default().push(object);
        }
    }
    let mut findings = Vec::new();
    let folder_of = |object: &Object| folder(revision.paths.get(object.document.file).copied().unwrap_or_default());
    for ((kind, _, name), objects) in by_name {
        let Some((first, others)) = objects.split_first() else { continue };
        for object in others {
            let (at, what, hint) = if kind.is_object() {
                // People keep both ways side by side, and apply one of the files.
                let is_other_way = is_of_auto_mode(&first.document) != is_of_auto_mode(&object.document);
                let hint = match folder_of(first) == folder_of(object) {
                    true if is_other_way => {
                        "one is of EKS Auto Mode, and the other is not: put them in folders of their own, or remove one of them"
                    }
                    true => "rename or remove one of them",
                    false => {
                        "if the folders are for different clusters, name the one that is meant; else rename or remove one of them"
                    }
                };
                ("/metadata/name", format!("{} `{name}`", kind.name()), hint)
            } else {
                ("/kind", kind.name().to_owned(), "keep one of them")
            };
            let message = format!("{what} is defined twice");
            let finding = Finding::at(&DUPLICATE, &object.document, at, FindingPlace::Value, message);
            findings.push(finding.related(&first.document, at, "first defined here").hint(hint));
        }
    }
    findings
}

/// Pools that refer to an EC2NodeClass, with its name.
pub(super) fn references<'r>(revision: &'r Revision<'_>) -> impl Iterator<Item = (&'r Object, &'r str)> {
    revision.of(Kind::NodePool).filter_map(|pool| {
        let text = |field| pool.document.str(&format!("{REFERENCE}/{field}"));
        let ours = text("kind") == Some(Kind::EC2NodeClass.name());
        text("name").filter(|name| ours && !name.is_empty()).map(|name| (pool, name))
    })
}

/// Classes by name. Where two classes have one name, nobody knows which of them is meant, so neither is here.
pub(super) fn classes<'r>(revision: &'r Revision<'_>) -> BTreeMap<&'r str, &'r Object> {
    let mut found: BTreeMap<&str, Option<&Object>> = BTreeMap::new();
    for class in revision.of(Kind::EC2NodeClass) {
        found.entry(class.name().unwrap_or_default()).and_modify(|known| *known = None).or_insert(Some(class));
    }
    found.into_iter().filter_map(|(name, class)| Some((name, class?))).collect()
}

fn class_names<'r>(revision: &'r Revision<'_>) -> BTreeSet<&'r str> {
    revision.of(Kind::EC2NodeClass).filter_map(Object::name).collect()
}

fn class_missing(revision: &Revision<'_>) -> Vec<Finding> {
    let (classes, renamed) = (class_names(revision), Renamed::of(revision, Kind::EC2NodeClass));
    let missing = references(revision).filter(|(_, name)| !classes.contains(name));
    // Where the files have no class at all, Terraform, a chart or another repository makes them: nothing is wrong with the files.
    let severity = if classes.is_empty() { Note } else { CLASS_MISSING.severity };
    missing
        .map(|(pool, name)| {
            let pointer = format!("{REFERENCE}/name");
            let message = format!("the EC2NodeClass `{name}` is not in these files");
            let mut finding = Finding::at(&CLASS_MISSING, &pool.document, &pointer, FindingPlace::Value, message);
            finding.severity = severity;
            if let Some(class) = renamed.get(name, pool) {
                return left_behind(finding, class, "nodeClassRef");
            }
            finding.hint(match suggest::did_you_mean(name, classes.iter().copied()) {
                Some(question) => question,
                None => "a plan takes it from the cluster; where that has none either, the pool makes no nodes".into(),
            })
        })
        .collect()
}

/// Objects that have another name in their file than the kustomization gave them that built them.
pub(super) struct Renamed<'r>(BTreeMap<(usize, String), &'r Object>);

impl<'r> Renamed<'r> {
    pub(super) fn of(revision: &'r Revision<'_>, kind: Kind) -> Self {
        let entry = |object: &'r Object| {
            let written = object.document.text_at("/metadata/name")?;
            let name = written.trim_matches(['"', '\'']);
            (object.name() != Some(name)).then(|| ((object.build, name.to_owned()), object))
        };
        let built = revision.of(kind).filter(|object| object.build.is_some()).filter_map(entry);
        Self(built.filter_map(|((build, name), object)| Some(((build?, name), object))).collect())
    }

    /// The one of this name in its file that was built together with `beside`.
    pub(super) fn get(&self, name: &str, beside: &Object) -> Option<&'r Object> {
        self.0.get(&(beside.build?, name.to_owned())).copied()
    }
}

/// Says of a name that is missing that the object was renamed, and the field not.
pub(super) fn left_behind(finding: Finding, object: &Object, field: &str) -> Finding {
    let now = object.name().unwrap_or_default();
    let hint = format!(
        "it is built as `{now}`, and `{field}` stays: kustomize changes it only if a nameReference under `configurations` names the field; \
         add one, or patch the field"
    );
    finding.related(&object.document, "/metadata/name", format!("built as `{now}`")).hint(hint)
}

fn class_kind(revision: &Revision<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_ours = |pool: &&Object| !is_of_auto_mode(&pool.document) && !is_of_another_provider(&pool.document);
    for pool in revision.of(Kind::NodePool).filter(is_ours) {
        for (field, wanted) in [("group", CLASS_GROUP), ("kind", Kind::EC2NodeClass.name())] {
            let pointer = format!("{REFERENCE}/{field}");
            // A group with a version, or an empty one, fails the schema.
            let Some(text) = pool.document.str(&pointer).filter(|text| !text.is_empty() && !text.contains('/')) else {
                continue;
            };
            if text != wanted {
                let message = format!("the {field} `{text}` is not supported: nodes are EC2 instances");
                let finding = Finding::at(&CLASS_KIND, &pool.document, &pointer, FindingPlace::Value, message);
                findings.push(finding.hint(format!("write `{wanted}`")));
            }
        }
    }
    findings
}

fn class_unused(revision: &Revision<'_>) -> Vec<Finding> {
    // Classes alone are a folder whose pools are elsewhere.
    if revision.of(Kind::NodePool).next().is_none() {
        return Vec::new();
    }
    let mut used: BTreeSet<&str> = references(revision).map(|(_, name)| name).collect();
    // Of a pool that means it by the name of its file more is said.
    let renamed = Renamed::of(revision, Kind::EC2NodeClass);
    used.extend(references(revision).filter_map(|(pool, name)| renamed.get(name, pool)?.name()));
    let classes = revision.of(Kind::EC2NodeClass).filter_map(|class| Some((class, class.name()?)));
    classes
        .filter(|(_, name)| !used.contains(name))
        .map(|(class, name)| {
            let message = format!("no pool uses the EC2NodeClass `{name}`");
            Finding::at(&CLASS_UNUSED, &class.document, "/metadata/name", FindingPlace::Value, message)
        })
        .collect()
}

fn pool_missing(revision: &Revision<'_>) -> Vec<Finding> {
    let pools: BTreeSet<&str> = revision.of(Kind::NodePool).filter_map(Object::name).collect();
    let renamed = Renamed::of(revision, Kind::NodePool);
    let mut findings = Vec::new();
    for budget in revision.of(Kind::DisruptionBudget) {
        for (pointer, name) in budget.document.items("/spec/nodePoolSelector/names") {
            let Some(name) = name.as_str().filter(|name| !pools.contains(name)) else { continue };
            let message = format!("the NodePool `{name}` is not in these files");
            let finding = Finding::at(&POOL_MISSING, &budget.document, &pointer, FindingPlace::Value, message);
            findings.push(match renamed.get(name, budget) {
                Some(pool) => left_behind(finding, pool, "nodePoolSelector.names"),
                None => finding.maybe_hint(suggest::did_you_mean(name, pools.iter().copied())),
            });
        }
    }
    findings
}

/// Pools that pods ask for, held against all that there are. `is_all_known` says that nothing that is not read may
/// bring more pools.
pub fn pools_of_workloads(workloads: &Workloads, objects: &[Object], is_all_known: bool) -> Vec<Finding> {
    let pools = || objects.iter().filter(|object| object.kind == Kind::NodePool);
    let names: BTreeSet<&str> = pools().filter_map(Object::name).collect();
    let is_open = pools().any(|pool| pool.document.variables.is_open_within("/metadata/name"));
    // Workloads alone are a folder whose pools are elsewhere.
    if names.is_empty() || is_open {
        return Vec::new();
    }
    let templates = objects.iter().filter(|object| object.kind == Kind::PodTemplate);
    let of_templates: Vec<AskedPool> =
        templates.flat_map(|template| asked_pools(&template.document, "/template/spec")).collect();
    let asked = workloads.asked_pools().chain(&of_templates).filter(|asked| !names.contains(asked.name.as_str()));
    let finding = |asked: &AskedPool| {
        let message = format!("the NodePool `{}` is not in these files", asked.name);
        let mut finding = Finding::at(&POOL_MISSING, &asked.document, &asked.pointer, FindingPlace::Value, message);
        match suggest::did_you_mean(&asked.name, names.iter().copied()) {
            Some(question) => Some(finding.hint(question)),
            None if !is_all_known => None,
            None => {
                // The pool may be in another repository.
                finding.severity = Note;
                Some(finding.hint("where the cluster has none of this name either, the pods stay pending"))
            }
        }
    };
    asked.filter_map(finding).collect()
}
