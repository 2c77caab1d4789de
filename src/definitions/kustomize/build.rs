//! One kustomization after another: resources, components, and what is done with them, in the order of `kustomize build`.

use std::collections::BTreeSet;

use super::builder::{BUILD_HINT, Builder, ITEMS_MAX, not_there};
use super::layout::{Layout, Target};
use super::transform::TextCounts;
use super::{History, Item, follow, form, generate, patch, replace, transform};
use crate::api::kustomization::{Purpose, Reference, folder, join};
use crate::definitions::diagnostic::{Severity, Span};
use crate::definitions::document::{Document, Parsed};
use crate::definitions::files::covers;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::{Class, classify};
use crate::definitions::limits::BUILT_BYTES;
use crate::definitions::rules::{kustomize as rules, reading};

/// What was built of one kustomization that no other one takes from.
#[derive(Debug)]
pub struct Build {
    pub top: usize,
    pub documents: Vec<Document>,
    /// Of each of them.
    pub histories: Vec<History>,
}

impl Build {
    pub(super) fn clear(&mut self) {
        self.documents.clear();
        self.histories.clear();
    }

    pub(super) fn push(&mut self, document: Document, history: History) {
        self.documents.push(document);
        self.histories.push(history);
    }
}

/// Kustomizations in kustomizations; deeper ones are made to exhaust the reader.
const DEPTH_MAX: usize = 32;
/// Builds `tops`. Gives also the files that had a part in it, and what was found on the way.
pub fn build(layout: &Layout<'_>, parsed: &[Parsed], tops: &[usize]) -> (Vec<Build>, BTreeSet<usize>, Vec<Finding>) {
    let mut builder = Builder::new(layout, parsed);
    let mut builds = Vec::new();
    for top in tops {
        let mut items = builder.accumulate(*top, Vec::new());
        follow::apply(&mut builder, &[*top], &mut items);
        let kept = items.into_iter().filter(|item| item.generated.is_none()).map(|item| (item.document, item.history));
        let (documents, histories) = kept.unzip();
        builds.push(Build { top: *top, documents, histories });
    }
    (builds, builder.used, builder.findings)
}

impl Builder<'_> {
    /// Everything that a kustomization makes of what its parent has (a component), or of nothing.
    fn accumulate(&mut self, kustomization: usize, before: Vec<Item>) -> Vec<Item> {
        let Some(document) = self.layout.document(kustomization) else { return before };
        if self.path.len() >= DEPTH_MAX {
            let message = format!("kustomizations take resources from each other more than {DEPTH_MAX} deep");
            self.findings.push(Finding::at(&rules::INVALID, document, "", FindingPlace::Key, message));
            return before;
        }
        let is_fresh = before.is_empty();
        if let Some(built) = self.built.get(&kustomization).filter(|_| is_fresh) {
            let items = built.clone();
            self.count(&items);
            return if self.is_too_much() { self.too_many(document) } else { items };
        }
        self.path.push(kustomization);
        self.used.insert(kustomization);
        self.findings.extend(form::check(document));
        self.check_files(kustomization, document);
        let mut items = before;
        for wanted in [Purpose::Resource, Purpose::Component] {
            for (reference, target) in self.layout.references(kustomization) {
                if reference.purpose == wanted {
                    items = self.take(document, &reference.pointer, &reference.path, wanted, target, items);
                }
            }
        }
        self.transform(kustomization, document, &mut items);
        self.path.pop();
        self.count(&items);
        if self.is_too_much() {
            return self.too_many(document);
        }
        if is_fresh {
            self.built.insert(kustomization, items.clone());
        }
        items
    }

    fn too_many(&mut self, document: &Document) -> Vec<Item> {
        let message = if self.items > ITEMS_MAX {
            format!("kustomizations make more than {ITEMS_MAX} objects together")
        } else {
            format!("kustomizations build and copy more than {} MiB together", BUILT_BYTES >> 20)
        };
        self.findings.push(Finding::at(&reading::LIMIT, document, "", FindingPlace::Key, message));
        Vec::new()
    }

    /// In the order of `kustomize build`.
    fn transform(&mut self, kustomization: usize, document: &Document, items: &mut Vec<Item>) {
        let around = folder(self.layout.path(kustomization));
        let generated = generate::apply(document, items, self.is_in_part());
        self.findings.extend(generated);
        for found in patch::of(self, around, document, "patchesStrategicMerge") {
            patch::apply(self, &found, items);
        }
        for found in patch::of(self, around, document, "patches") {
            patch::apply(self, &found, items);
        }
        transform::namespace(document, items);
        transform::names(document, items);
        transform::labels(document, items);
        transform::annotations(document, items);
        for found in patch::of(self, around, document, "patchesJson6902") {
            patch::apply(self, &found, items);
        }
        let for_nothing = transform::replicas(document, items, TextCounts::Refused);
        if !self.may_hold_more() {
            self.findings.extend(for_nothing);
        }
        replace::apply(self, kustomization, document, items);
    }

    pub(super) fn take(
        &mut self,
        document: &Document,
        pointer: &str,
        path: &str,
        purpose: Purpose,
        target: Target,
        mut items: Vec<Item>,
    ) -> Vec<Item> {
        let is_component = |it: usize| self.layout.document(it).and_then(|it| it.str("/kind")) == Some("Component");
        let problem = match target {
            Target::Kustomization(other) if self.layout.is_empty(other) => {
                if self.used.insert(other) {
                    self.findings.push(empty(other));
                }
                return items;
            }
            Target::Kustomization(other) if self.layout.document(other).is_none() => {
                // What is wrong with it is said of its own file.
                self.has_unread = true;
                return items;
            }
            Target::Kustomization(other) if self.path.contains(&other) => match self.path.last() == Some(&other) {
                true => "the kustomization takes resources from itself".to_owned(),
                false => "the kustomization takes resources from itself, by way of others".to_owned(),
            },
            Target::Kustomization(other) => match (purpose, is_component(other)) {
                (Purpose::Component, true) => return self.accumulate(other, items),
                (Purpose::Component, false) => format!("`{path}` is no component: its kind is not Component"),
                (_, true) => format!("`{path}` is a component, which goes under `components`"),
                (_, false) => {
                    items.extend(self.accumulate(other, Vec::new()));
                    return items;
                }
            },
            Target::File(file) if purpose == Purpose::Resource && self.layout.document(file).is_none() => {
                self.used.insert(file);
                let Some(Parsed { documents, .. }) = self.parsed.get(file) else { return items };
                self.has_unread |= self.parsed.get(file).is_some_and(Parsed::lacks_some);
                for object in documents {
                    match classify(&object.value) {
                        Class::NoObject => self.findings.extend(no_object(document, pointer, object)),
                        _ => items.push(Item::new(object.clone())),
                    }
                }
                return items;
            }
            Target::File(_) if purpose == Purpose::Resource => format!("`{path}` is a kustomization: name its folder"),
            Target::File(_) => format!("`{path}` is a file, and a component is a folder"),
            Target::Folder => format!("`{path}` has no kustomization.yaml"),
            Target::Remote => {
                let message = format!("`{path}` lies elsewhere, and is not read");
                let finding = Finding::at(&rules::NOT_CARRIED_OUT, document, pointer, FindingPlace::Value, message);
                self.findings.push(finding.hint(BUILD_HINT));
                return items;
            }
            Target::Missing => return self.missing(document, pointer, path, items),
        };
        self.findings.push(Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, problem));
        items
    }

    /// What kustomize says of the files that are named before it reads them. What configurations say comes at the end.
    fn check_files(&mut self, kustomization: usize, document: &Document) {
        let around = folder(self.layout.path(kustomization));
        for (Reference { pointer, path, purpose }, target) in self.layout.references(kustomization) {
            let joined = join(around, &path).unwrap_or_default();
            // It is outside of all that was asked for.
            let is_elsewhere = joined.starts_with("../") && !around.starts_with("..");
            let is_inside = || covers(around, &joined) && !is_elsewhere;
            match target {
                Target::Missing if purpose == Purpose::Configuration => {
                    self.findings.push(not_there(document, &pointer, &path));
                }
                Target::File(_) if !is_inside() => {
                    let message = format!(
                        "`{path}` lies outside of the folder of the kustomization: `kustomize build` refuses it"
                    );
                    let finding = Finding::at(&rules::OUTSIDE, document, &pointer, FindingPlace::Value, message);
                    let mut finding = finding.hint(OUTSIDE_HINT);
                    // Whether Flux builds it says a file that may not be among those that were asked for.
                    if is_elsewhere {
                        finding.severity = Severity::Note;
                    }
                    self.findings.push(finding);
                }
                _ => {}
            }
        }
    }

    fn missing(&mut self, document: &Document, pointer: &str, path: &str, items: Vec<Item>) -> Vec<Item> {
        self.findings.push(not_there(document, pointer, path));
        items
    }
}

const OUTSIDE_HINT: &str = "put a kustomization beside it and name its folder; or build with --load-restrictor LoadRestrictionsNone, as Flux does";

/// Of a file that is called like a kustomization, and in which nothing stands.
pub fn empty(file: usize) -> Finding {
    Finding::at_span(&rules::INVALID, file, Span::start(), form::EMPTY).hint(form::EMPTY_HINT)
}

/// What is said of a document among the resources that is no object. One without content is passed over.
fn no_object(kustomization: &Document, pointer: &str, document: &Document) -> Option<Finding> {
    if document.value.is_null() {
        return None;
    }
    let message = "this is no object: kustomize builds nothing of what it stands in";
    let finding = Finding::at(&rules::INVALID, document, "", FindingPlace::Key, message);
    Some(
        finding
            .related(kustomization, pointer, "taken from here")
            .hint("add apiVersion, kind and metadata.name, or do not name the file"),
    )
}

#[cfg(test)]
mod tests {
    use crate::api::source::{SourceFile, Standing};
    use crate::definitions::{GivenVariables, Severity, lint};

    #[test]
    fn what_lies_outside_of_the_folder_that_is_linted_is_outside() {
        const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: default }\n";
        let outside = |kustomization: &str, others: &[(&str, &str)]| {
            let named =
                |(path, text): &(&str, &str)| SourceFile { standing: Standing::Named, ..SourceFile::new(*path, *text) };
            let own = [SourceFile::new("kustomization.yaml", kustomization)];
            let files: Vec<SourceFile> = own.into_iter().chain(others.iter().map(named)).collect();
            let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
            let found = found.filter(|it| it.code == "CL0023");
            found.map(|it| (it.severity, it.span.line)).collect::<Vec<(Severity, usize)>>()
        };
        let base = [("../base/kustomization.yaml", "resources: [pool.yaml]\n"), ("../base/pool.yaml", POOL)];
        let patch = ("../weight.yaml", "[{ op: add, path: /spec/weight, value: 7 }]");
        let note = |line: usize| vec![(Severity::Note, line)];
        assert_eq!(outside("resources: [../base/pool.yaml]\n", &base[1..]), note(1));
        assert_eq!(outside("resources: [../base]\n", &base), []);
        let patches = "resources: [../base]\npatches: [{ target: { kind: NodePool }, path: ../weight.yaml }]\n";
        assert_eq!(outside(patches, &[&base[..], &[patch]].concat()), note(2));
    }
}
