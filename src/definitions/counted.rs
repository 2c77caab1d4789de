//! How much one reading holds in memory. Documents and their values are counted while files are parsed, and past a
//! limit no more files are parsed. A small commit of small files could otherwise take gigabytes.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::diagnostic::Span;
use super::document::Parsed;
use super::findings::Finding;
use super::limits;
use super::rules::reading::LIMIT;

/// What was parsed so far. Whether it is too much does not depend on the order of parsing.
#[derive(Debug, Default)]
pub struct Counted {
    documents: AtomicUsize,
    values: AtomicUsize,
}

impl Counted {
    pub fn add(&self, parsed: &Parsed) {
        self.documents.fetch_add(parsed.documents.len(), Ordering::Relaxed);
        self.values.fetch_add(parsed.documents.iter().map(|it| values(&it.value)).sum(), Ordering::Relaxed);
    }

    pub fn is_too_much(&self) -> bool {
        self.documents.load(Ordering::Relaxed) > limits::REVISION_DOCUMENTS
            || self.values.load(Ordering::Relaxed) > limits::REVISION_VALUES
    }

    /// The finding where it is too much, at the first file.
    pub fn finding(&self) -> Option<Finding> {
        let message = format!(
            "the files hold more than {} documents, or {} values, together: none is read",
            limits::REVISION_DOCUMENTS,
            limits::REVISION_VALUES
        );
        let hint = "name the files and folders that hold definitions under `spec.paths` of cutlist.yaml";
        self.is_too_much().then(|| Finding::at_span(&LIMIT, 0, Span::start(), message).hint(hint))
    }
}

fn values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
