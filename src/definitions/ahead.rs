//! What can be said of a file without the others, worked out before the files are gone through in their order.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::before::Before;
use super::context::Context;
use super::document::{Document, Parsed};
use super::findings::Finding;
use super::judging::Judged;
use super::kinds::{Class, classify};
use super::memory::JudgedOfFile;
use super::{held, rules, schema, unread};
use crate::api::source::SourceFile;

/// What was worked out, by the place of the document in its file.
#[derive(Debug, Default)]
pub struct Ahead {
    pub judged: JudgedOfFile,
    foreign: BTreeMap<usize, Vec<Finding>>,
}

impl Ahead {
    pub fn of(source: &SourceFile, parsed: &Parsed, context: &Context, before: Option<&Before>) -> Self {
        let mut ahead = Self::default();
        if context.template_of(&source.path).is_some() {
            return ahead;
        }
        let of_document = |document: &Document| match classify(&document.value) {
            Class::Read(kind) if unread::misplaced(kind, document, &source.path).is_none() => {
                let old = |value: &_| before.and_then(|before| before.find(&source.path, kind, value));
                (Some(Judged::of(kind, document.clone(), (source, &source.path), context, old)), None)
            }
            Class::Foreign => (None, Some(of_foreign(document))),
            _ => (None, None),
        };
        // A file may hold all that there is.
        let found: Vec<(Option<Judged>, Option<Vec<Finding>>)> = parsed.documents.par_iter().map(of_document).collect();
        for (number, (judged, foreign)) in found.into_iter().enumerate() {
            ahead.judged.extend(judged.map(|judged| (number, judged)));
            ahead.foreign.extend(foreign.map(|findings| (number, findings)));
        }
        ahead
    }

    /// What is found in an object of another kind.
    pub fn foreign(&mut self, number: usize, document: &Document) -> Vec<Finding> {
        self.foreign.remove(&number).unwrap_or_else(|| of_foreign(document))
    }
}

/// Findings in an object of another kind. Workloads say which nodes are needed, and classes of Auto Mode what it makes.
pub fn of_foreign(document: &Document) -> Vec<Finding> {
    let mut found = schema::faults_of_workload(document);
    found.extend(rules::requirements::of_workload(document));
    found.extend(rules::evictions::of_workload(document));
    found.extend(rules::do_not_disrupt::of_workload(document));
    found.extend(rules::auto_mode::fields_of_class(document));
    found.extend(held::finding(document));
    found
}
