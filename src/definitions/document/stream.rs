//! Files of several documents. kubectl also takes values of JSON one after the other, as `kubectl get -o json | jq '.items[]'` writes them.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::events::{self, Scan, Start};
use crate::definitions::limits;

/// Walks every document of `text`, which starts `offset` bytes into its file.
pub fn scan(file: usize, text: &str, offset: usize) -> Scan {
    let Some(values) = values_of_json(text) else {
        return events::scan(file, text, Start { byte: offset, ..Start::default() });
    };
    let mut all = Scan::default();
    let (mut start, mut at) = (Start { byte: offset, ..Start::default() }, 0);
    for value in values {
        if all.documents.len() >= limits::FILE_DOCUMENTS {
            all.findings.push(events::too_many(file));
            break;
        }
        start = moved(start, text.get(at..value.start).unwrap_or_default());
        at = value.start;
        let mut scanned = events::scan(file, text.get(value.clone()).unwrap_or_default(), start);
        for document in &mut scanned.documents {
            let range = document.range.clone();
            document.range = range.start + value.start..range.end + value.start;
        }
        all.documents.append(&mut scanned.documents);
        all.findings.append(&mut scanned.findings);
    }
    all
}

/// Where a text begins that has another one, `passed`, before it.
fn moved(start: Start, passed: &str) -> Start {
    let lines = passed.matches('\n').count();
    let of_line = passed.rsplit('\n').next().unwrap_or_default().chars().count();
    let column = if lines == 0 { start.column + of_line } else { of_line };
    Start { byte: start.byte + passed.len(), line: start.line + lines, column }
}

/// Where each value stands, if the text is more than one of JSON, and nothing else.
fn values_of_json(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut found = Vec::new();
    loop {
        let rest = text.get(values.byte_offset()..)?;
        let start = text.len() - rest.trim_start().len();
        match values.next() {
            None => break,
            Some(value) => value.ok()?,
        };
        text.get(start..)?.starts_with('{').then_some(())?;
        found.push(start..values.byte_offset());
    }
    (found.len() > 1).then_some(found)
}
