//! CL0338: images of a class that are for no instance type of a pool, by the architecture that their names tell.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Rule;
use super::one_pool::is_open;
use super::references::{REFERENCE, classes};
use super::types_left::{MATCHING, entries};
use crate::api::keys;
use crate::core::catalog::matching::Entry;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static OTHER_ARCHITECTURE: Rule = Rule::revision(
    "CL0338",
    "image-of-another-architecture",
    Warning,
    "The images that a class names are for the architecture of instance types of its pools.",
    other_architecture,
);

pub static RULES: &[&Rule] = &[&OTHER_ARCHITECTURE];

const TERMS: &str = "/spec/amiSelectorTerms";

/// What names of images say, and the value of the label.
const WORDS: [(&str, &str); 5] =
    [("arm64", "arm64"), ("aarch64", "arm64"), ("x86_64", "amd64"), ("x86-64", "amd64"), ("amd64", "amd64")];

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
    let name = ["name", "ssmParameter"].into_iter().find_map(|field| term.get(field)?.as_str())?.to_lowercase();
    let said: BTreeSet<&str> = WORDS.iter().filter(|(word, _)| name.contains(word)).map(|(_, value)| *value).collect();
    said.first().copied().filter(|_| said.len() == 1)
}

/// The architectures of the instance types that match what the pool requires.
fn of_types(pool: &Object) -> BTreeSet<&str> {
    let entries: Vec<Entry> = pool.asked.lists.iter().flat_map(entries).collect();
    let Some(matching) = MATCHING.as_ref() else { return BTreeSet::new() };
    let relevant = matching.relevant(&entries);
    matching.values_in(keys::ARCHITECTURE, &matching.types(&relevant)).collect()
}
