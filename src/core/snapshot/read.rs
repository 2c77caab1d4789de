//! Text to snapshot: one `List`, a stream of documents, JSON or YAML, gzip or not.
//!
//! Memory follows the trimmed objects, not the file: JSON is cut into objects without building a tree, each object is read
//! into its type, trimmed, and kept.

use super::collect::Collector;
use super::objects::Snapshot;
use super::{decode, json, unpack, yaml};

/// Why nothing of an input was used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is nothing in it")]
    Empty,
    #[error("the gzip data is cut off at byte {byte}; nothing of it was used")]
    GzipCutOff { byte: usize },
    #[error("the gzip data is damaged after {bytes_unpacked} unpacked bytes; nothing of it was used")]
    Gzip { bytes_unpacked: usize, source: std::io::Error },
    #[error("it unpacks to more than {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    #[error("it holds more than {limit} objects")]
    TooMany { limit: usize },
    #[error("line {line}: an object of more than {limit_bytes} bytes, or so much between two")]
    ObjectTooLarge { line: usize, limit_bytes: u64 },
    #[error("byte {byte} is not text: neither UTF-8 nor UTF-16")]
    NotText { byte: usize },
    #[error("it is cut off at byte {byte} (line {line}); nothing of it was used")]
    CutOff { byte: usize, line: usize },
    #[error("line {line}, column {column}: {problem}")]
    Syntax { line: usize, column: usize, problem: String },
    #[error("{place}: no `kind`: not a Kubernetes object, or cut off; nothing of it was used")]
    NoKind { place: String },
    #[error("{object}: {problem}")]
    Object {
        /// `Pod shop/web-1 (line 12)`
        object: String,
        /// `spec.containers[0].ports: invalid type: ...`
        problem: String,
    },
    #[error("it is an answer of the API server, not objects: {answer}")]
    Status {
        /// `pods is forbidden (Forbidden)`
        answer: String,
    },
    #[error("it is a table for people to read, not objects")]
    Table,
    #[error("it is a page of HTML, not objects")]
    Page,
    #[error("it is a message, not objects: {line}")]
    Message { line: String },
    #[error("no object in it is of a kind that planning uses, only {kinds}")]
    NothingUsed {
        /// `2 x v1/ConfigMap`
        kinds: String,
    },
    #[error("{place}: lists inside lists, {limit} deep")]
    TooDeep { place: String, limit: usize },
}

/// What reading an input came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Objects of kinds that planning uses.
    pub objects: usize,
    /// What the reader should know, such as an object that occurred twice; in a stable order.
    pub notes: Vec<String>,
}

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
