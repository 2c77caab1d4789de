//! Text to snapshot: one `List`, a stream of documents, JSON or YAML, gzip or not.
//!
//! Memory follows the trimmed objects, not the file: JSON is cut into objects without building a tree, each object is read
//! into its type, trimmed, and kept.

use super::collect::Collector;
use super::objects::Snapshot;
use super::{decode, json, unpack, yaml};

pub use super::read_error::{ReadError, ReadReport};

/// Reads what `kubectl get ... -A -o json` (or yaml) prints: a `List`, typed lists such as `PodList`, single objects,
/// streams of them; gzip of any. Objects join those in `into`; of two with the same kind, namespace and name the
/// last counts. On an error `into` is as it was.
pub fn read(bytes: &[u8], into: &mut Snapshot) -> Result<ReadReport, ReadError> {
    if unpack::is_gzip(bytes) {
        let mut collector = Collector::default();
        if let Some(json::End::OfText) = unpack::read_json(bytes, &mut collector)? {
            return finish(collector, into);
        }
        return read_text(&unpack::whole(bytes)?, into);
    }
    read_text(bytes, into)
}

/// The same of what is not packed (or still is, after it was unpacked once: that is no text).
fn read_text(bytes: &[u8], into: &mut Snapshot) -> Result<ReadReport, ReadError> {
    let mut collector = Collector::default();
    let text = decode::text(bytes)?;
    match text.trim_start().as_bytes().first() {
        None => return Err(ReadError::Empty),
        Some(b'<') => return Err(ReadError::Page),
        Some(b'{' | b'[') => match json::read(&text, &mut collector)? {
            json::End::OfText => {}
            // JSON objects between the separators of YAML: a YAML stream.
            json::End::AtYamlSeparator => {
                collector = Collector::default();
                yaml::read(&text, &mut collector)?;
            }
        },
        // What is left of a template that rendered to nothing.
        Some(_) if text.lines().all(|line| matches!(line.trim(), "" | "---" | "...") || line.starts_with('#')) => {
            return Err(ReadError::Empty);
        }
        Some(_) => {
            if let Some(error) = for_people(&text) {
                return Err(error);
            }
            yaml::read(&text, &mut collector)?;
        }
    }
    finish(collector, into)
}

fn finish(collector: Collector, into: &mut Snapshot) -> Result<ReadReport, ReadError> {
    if collector.documents == 0 {
        return Err(ReadError::Empty);
    }
    // An empty list is an empty cluster. Objects of other kinds alone are another file than was meant, and a plan for no
    // cluster at all looks like one in which there is nothing to do.
    if let Some(kinds) = collector.only_unused() {
        return Err(ReadError::NothingUsed { kinds });
    }
    Ok(collector.merge_into(into))
}

/// How what `kubectl` says to people begins; as YAML it would be text, or a mapping that means nothing.
const MESSAGES: [&str; 6] = [
    "Error from server",
    "error: ",
    "Unable to connect to the server",
    "The connection to the server",
    "No resources found",
    "You must be logged in",
];
/// The columns with which its tables begin.
const COLUMNS: [&str; 3] = ["NAME ", "NAMESPACE ", "LAST SEEN "];

fn for_people(text: &str) -> Option<ReadError> {
    let line = text.trim_start().lines().next()?.trim_end();
    if MESSAGES.iter().any(|beginning| line.starts_with(beginning)) {
        return Some(ReadError::Message { line: line.to_owned() });
    }
    COLUMNS.iter().any(|column| line.starts_with(column)).then_some(ReadError::Table)
}
