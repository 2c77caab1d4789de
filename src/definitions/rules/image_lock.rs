//! CL0680 to CL0699: images that are locked in `cutlist.lock`, held against the classes that they are for.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Rule;
use super::ec2_node_class::UNPINNED_ALIAS;
use crate::api::ec2_node_class::AmiSelectorTerm;
use crate::api::image_lock::LockedClass;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static NO_LOCK: Rule =
    Rule::pass("CL0680", "no-image-lock", Error, "The file cutlist.lock at the root holds an ImageLock.");
pub static LOCKED_TWICE: Rule = Rule::document(
    "CL0681",
    "locked-twice",
    Error,
    "cutlist.lock has each EC2NodeClass once, with at least one image.",
    &[Kind::ImageLock],
    locked_twice,
);
pub static OUTDATED_LOCK: Rule = Rule::revision(
    "CL0682",
    "outdated-image-lock",
    Warning,
    "Images are locked for the terms that the EC2NodeClass has.",
    outdated,
);
pub static NOT_LOCKED: Rule = Rule::revision(
    "CL0683",
    "class-not-locked",
    Warning,
    "Where images are locked, those of every EC2NodeClass are.",
    not_locked,
);
pub static LOCK_UNUSED: Rule =
    Rule::revision("CL0684", "image-lock-unused", Note, "Images are locked for classes that are defined.", unused);

pub static RULES: &[&Rule] = &[&NO_LOCK, &LOCKED_TWICE, &OUTDATED_LOCK, &NOT_LOCKED, &LOCK_UNUSED];

const CLASSES: &str = "/spec/nodeClasses";
const RENEW: &str = "`cutlist ami lock` renews it";

fn locked_twice(document: &Document) -> Vec<Finding> {
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    let mut findings = Vec::new();
    for (pointer, class) in document.items(CLASSES) {
        let Some(name) = name_of(class) else { continue };
        let at = format!("{pointer}/name");
        if class.get("images").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            let message = format!("no image is locked for the EC2NodeClass `{name}`");
            findings.push(Finding::at(&LOCKED_TWICE, document, &at, FindingPlace::Value, message).hint(RENEW));
        }
        match first.get(name) {
            Some(before) => {
                let message = format!("the images of the EC2NodeClass `{name}` are locked twice");
                let finding = Finding::at(&LOCKED_TWICE, document, &at, FindingPlace::Value, message);
                findings.push(finding.related(document, before, "first locked here").hint("keep one of them"));
            }
            None => {
                first.insert(name, at);
            }
        }
    }
    findings
}

fn name_of(class: &Value) -> Option<&str> {
    class.get("name").and_then(Value::as_str)
}

/// The pointer and the value of each class in the lock, by its name.
type LockedClasses = BTreeMap<String, (String, LockedClass)>;

/// The lock, and what it has for each class. Another rule finds a lock that can not be read.
fn locked<'r>(revision: &'r Revision<'_>) -> Option<(&'r Document, LockedClasses)> {
    let document = &revision.of(Kind::ImageLock).find(|lock| lock.usable)?.document;
    let of_class = |(pointer, value): (String, &Value)| {
        let class: LockedClass = serde_json::from_value(value.clone()).ok()?;
        Some((class.name.clone(), (pointer, class)))
    };
    Some((document, document.items(CLASSES).filter_map(of_class).collect()))
}

/// Whether the finding is about an alias that is not pinned, and the lock holds its images all the same.
pub fn answers(revision: &Revision<'_>, finding: &Finding) -> bool {
    let of_class = |name: &String| finding.object.as_deref() == Some(&format!("{}/{name}", Kind::EC2NodeClass.name()));
    std::ptr::eq(finding.rule, &UNPINNED_ALIAS)
        && locked(revision).is_some_and(|(_, locked)| locked.keys().any(of_class))
}

/// Classes with the terms for their images. A class whose terms depend on a variable, or can not be read, is left out.
fn classes<'r>(revision: &'r Revision<'_>) -> impl Iterator<Item = (&'r Object, &'r str, Vec<AmiSelectorTerm>)> {
    revision.of(Kind::EC2NodeClass).filter_map(|class| {
        let terms = class.document.value.pointer("/spec/amiSelectorTerms")?;
        let terms = serde_json::from_value(terms.clone()).ok()?;
        Some((class, class.name()?, terms)).filter(|_| !class.unchecked)
    })
}

fn outdated(revision: &Revision<'_>) -> Vec<Finding> {
    let Some((lock, locked)) = locked(revision) else { return Vec::new() };
    let finding = |(class, name, terms): (&Object, &str, Vec<AmiSelectorTerm>)| {
        let (pointer, _) = locked.get(name).filter(|(_, images)| !images.is_for(&terms))?;
        let message = format!(
            "the images of the EC2NodeClass `{name}` are locked for other terms than it has: they do not count"
        );
        let finding =
            Finding::at(&OUTDATED_LOCK, lock, &format!("{pointer}/amiSelectorTerms"), FindingPlace::Key, message);
        Some(finding.related(&class.document, "/spec/amiSelectorTerms", "the class has these").hint(RENEW))
    };
    classes(revision).filter_map(finding).collect()
}

fn not_locked(revision: &Revision<'_>) -> Vec<Finding> {
    let is_required = |settings: &Object| {
        settings.document.value.pointer("/spec/images/requireLock").and_then(Value::as_bool) == Some(true)
    };
    let is_required = revision.of(Kind::Settings).any(is_required);
    let locked = locked(revision).map(|(_, locked)| locked);
    if locked.is_none() && !is_required {
        return Vec::new();
    }
    let locked = locked.unwrap_or_default();
    let finding = |(class, name, _): (&Object, &str, Vec<AmiSelectorTerm>)| {
        let then = if is_required { "it launches no node" } else { "a newer image replaces its nodes by itself" };
        let message = format!("cutlist.lock has no images for the EC2NodeClass `{name}`: {then}");
        (!locked.contains_key(name)).then(|| {
            Finding::at(&NOT_LOCKED, &class.document, "/spec/amiSelectorTerms", FindingPlace::Key, message).hint(RENEW)
        })
    };
    classes(revision).filter_map(finding).collect()
}

fn unused(revision: &Revision<'_>) -> Vec<Finding> {
    let Some((lock, locked)) = locked(revision) else { return Vec::new() };
    let defined: Vec<&str> = revision.of(Kind::EC2NodeClass).filter_map(Object::name).collect();
    let gone = locked.iter().filter(|(name, _)| !defined.contains(&name.as_str()));
    let finding = |(name, (pointer, _)): (&String, &(String, LockedClass))| {
        let message = format!("the EC2NodeClass `{name}` is not in these files");
        Finding::at(&LOCK_UNUSED, lock, &format!("{pointer}/name"), FindingPlace::Value, message)
            .hint("`cutlist ami lock` takes it out")
    };
    gone.map(finding).collect()
}
