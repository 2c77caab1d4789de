//! What is done with objects after they were built: fields of a kustomization that stand in what another program is told.

use std::collections::BTreeSet;

use super::build::Build;
use super::builder::Builder;
use super::layout::Layout;
use super::transform::TextCounts;
use super::{History, Item, follow, patch, transform};
use crate::api::kustomization::Purpose;
use crate::definitions::diagnostic::Severity;
use crate::definitions::document::{Document, Parsed};
use crate::definitions::findings::Finding;

/// A file that no kustomization names, and its objects: what builds the folder takes it as it is.
#[derive(Debug)]
pub struct Plain {
    pub file: usize,
    pub documents: Vec<Document>,
}

/// Changes objects of several builds and files together, as one kustomization around all of them does.
pub struct Together<'b>(Builder<'b>);

impl<'b> Together<'b> {
    pub fn new(layout: &'b Layout<'b>, parsed: &'b [Parsed]) -> Self {
        Self(Builder::new(layout, parsed))
    }

    /// Files that had a part in it.
    pub fn into_used(self) -> BTreeSet<usize> {
        self.0.used
    }

    /// Carries out components, patches, names, labels, annotations and replicas of `fields`, a document with fields of a kustomization,
    /// as if it stood in the folder `around`. `Err`: something is wrong with it, and nothing was changed.
    pub fn change(
        &mut self,
        around: &str,
        fields: &Document,
        builds: &mut [&mut Build],
        plain: &mut [Plain],
    ) -> Result<Vec<Finding>, Vec<Finding>> {
        let of_builds = builds.iter().enumerate().flat_map(|(list, build)| {
            let histories = build.histories.iter();
            build
                .documents
                .iter()
                .zip(histories)
                .map(move |(document, history)| (list, document.clone(), history.clone()))
        });
        let first = builds.len();
        let of_files = plain.iter().enumerate().flat_map(|(index, it)| {
            it.documents.iter().map(move |document| (first + index, document.clone(), History::default()))
        });
        let item =
            |(list, document, history): (usize, Document, History)| Item { list, history, ..Item::new(document) };
        let mut items: Vec<Item> = of_builds.chain(of_files).map(item).collect();
        let builder = &mut self.0;
        for (pointer, path) in fields.items("/components") {
            let Some(path) = path.as_str() else { continue };
            let target = builder.layout.target(around, path);
            items = builder.take(fields, &pointer, path, Purpose::Component, target, items);
        }
        for found in patch::of(builder, around, fields, "patches") {
            patch::apply(builder, &found, &mut items);
        }
        transform::names(fields, &mut items);
        transform::labels(fields, &mut items);
        transform::annotations(fields, &mut items);
        let tops: Vec<usize> = builds.iter().map(|build| build.top).collect();
        let for_nothing = transform::replicas(fields, &mut items, TextCounts::Taken);
        if builder.knows_all_of(around, &tops) {
            builder.findings.extend(for_nothing);
        }
        follow::apply(builder, &tops, &mut items);
        let findings = std::mem::take(&mut builder.findings);
        if findings.iter().any(|finding| finding.rule.severity == Severity::Error) || builder.is_too_much() {
            return Err(findings);
        }
        builds.iter_mut().for_each(|build| build.clear());
        plain.iter_mut().for_each(|it| it.documents.clear());
        for Item { document, history, list, generated } in items {
            if generated.is_some() {
                continue;
            }
            if let Some(build) = builds.get_mut(list) {
                build.push(document, history);
            } else if let Some(file) = plain.get_mut(list.saturating_sub(first)) {
                file.documents.push(document);
            }
        }
        Ok(findings)
    }
}
