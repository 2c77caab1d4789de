//! Where a definition has the fields that reasons of a plan name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{Document, spans};
use super::findings::FindingPlace;
use crate::core::plan::DefinitionPlace;

/// Fields, and fields of which each entry has its place.
const FIELDS: [&str; 9] = [
    "/spec/replicas",
    "/spec/disruption",
    "/spec/disruption/consolidateAfter",
    "/spec/template",
    "/spec/template/spec/expireAfter",
    "/spec/template/spec/requirements",
    "/spec/amiSelectorTerms",
    "/spec/securityGroupSelectorTerms",
    "/spec/subnetSelectorTerms",
];
const MAPPINGS: [&str; 1] = ["/spec/limits"];
const LISTS: [&str; 2] = ["/spec/disruption/budgets", "/spec/template/spec/requirements"];

/// The place of one field, in whichever file it was written.
pub fn of(document: &Document, pointer: &str, paths: &[&str]) -> DefinitionPlace {
    let place = if pointer.is_empty() { FindingPlace::Value } else { FindingPlace::Key };
    // What a patch adds to a document does not move the document.
    let file = if pointer.is_empty() { document.file } else { document.file_of(pointer) };
    DefinitionPlace {
        file: paths.get(file).copied().unwrap_or_default().to_owned(),
        line: document.place(pointer, place).line,
    }
}

/// The places of what an image lock has: of each class by its name, and of its images by `CLASS/IMAGE`.
pub fn of_locked(document: &Document, paths: &[&str]) -> BTreeMap<String, DefinitionPlace> {
    let mut places = BTreeMap::from([(String::new(), of(document, "", paths))]);
    for (class, value) in document.items("/spec/nodeClasses") {
        let Some(name) = value.get("name").and_then(Value::as_str) else { continue };
        places.insert(name.to_owned(), of(document, &format!("{class}/name"), paths));
        for (image, value) in document.items(&format!("{class}/images")) {
            let Some(id) = value.get("id").and_then(Value::as_str) else { continue };
            places.insert(format!("{name}/{id}"), of(document, &format!("{image}/id"), paths));
        }
    }
    places
}

/// The places of the document and of those of the fields that are written.
pub fn of_fields(document: &Document, paths: &[&str]) -> BTreeMap<String, DefinitionPlace> {
    let written = FIELDS.iter().filter(|pointer| document.value.pointer(pointer).is_some());
    let written = written.map(|pointer| (*pointer).to_owned());
    let members = MAPPINGS.iter().flat_map(|pointer| document.members(pointer)).map(|(pointer, ..)| pointer);
    let items = LISTS.iter().flat_map(|pointer| document.items(pointer)).map(|(pointer, _)| pointer);
    let items = items.map(|pointer| (pointer.clone(), of_entry(document, &pointer, paths)));
    let all = std::iter::once(String::new()).chain(written).chain(members);
    all.map(|pointer| (pointer.clone(), of(document, &pointer, paths))).chain(items).collect()
}

/// Where a patch has a part of the entry, there: the rest of it says no more what it did where it was written.
fn of_entry(document: &Document, pointer: &str, paths: &[&str]) -> DefinitionPlace {
    let own = of(document, pointer, paths);
    let below = document.parts.iter().map(|(part, _)| part).filter(|part| spans::below(pointer, part).is_some());
    let mut parts = below.map(|part| of(document, part, paths));
    parts.find(|part| part.file != own.file).unwrap_or(own)
}
