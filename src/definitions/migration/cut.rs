//! A member that was taken out of a document, to be put elsewhere.

use serde_json::Value;

use super::emit::{self, Manner};
use super::tree::Entry;

/// What is put into a mapping.
#[derive(Clone, Debug)]
pub enum Piece {
    New(Value),
    Cut(Cut),
}

/// The lines that belong to a member of a block mapping.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Where the comments begin that stand right above it.
    pub above: usize,
    pub start: usize,
    pub end: usize,
    pub column: usize,
}

#[derive(Clone, Debug)]
pub struct Cut {
    pub value: Value,
    /// Comments that stood right above it.
    above: Vec<String>,
    /// Everything behind its key, each line without the indentation of the key; `None` where the value has to be written anew.
    behind_key: Option<Vec<String>>,
    /// All comments that go with it.
    pub comments: Vec<String>,
}

impl Cut {
    /// Of a mapping in braces: as it is written, if it stands in one line.
    pub fn of_flow(text: &str, entry: &Entry, value: Value, manner: Manner) -> Self {
        let written = text.get(entry.key.end..entry.value.end).unwrap_or_default();
        let is_plain = written.starts_with(": ") && !written.contains('\n') && !manner.is_json;
        let behind_key = is_plain.then(|| vec![written.to_owned()]);
        Self { value, above: Vec::new(), behind_key, comments: Vec::new() }
    }

    /// Of a mapping in a block, with the comments of its lines.
    pub fn of_block(text: &str, entry: &Entry, region: &Region, value: Value, comments: Vec<String>) -> Self {
        let lines = |from: usize, to: usize| text.get(from..to).unwrap_or_default().lines();
        let without_indentation = |line: &str| {
            let blanks = line.len() - line.trim_start_matches(' ').len();
            line.get(blanks.min(region.column)..).unwrap_or_default().to_owned()
        };
        let above: Vec<String> = lines(region.above, region.start).map(|line| line.trim().to_owned()).collect();
        let mut behind_key: Vec<String> = lines(entry.key.end, region.end).map(without_indentation).collect();
        if let Some(first) = behind_key.first_mut() {
            *first = lines(entry.key.end, region.end).next().unwrap_or_default().to_owned();
        }
        Self { value, above, behind_key: Some(behind_key), comments }
    }

    /// Another one that says the same goes away; what its comments say more is kept.
    pub fn take_comments(&mut self, other: &Self) {
        for comment in &other.comments {
            if !self.comments.contains(comment) {
                self.above.push(comment.clone());
                self.comments.push(comment.clone());
            }
        }
    }
}

impl Piece {
    pub fn value(&self) -> &Value {
        match self {
            Self::New(value) => value,
            Self::Cut(cut) => &cut.value,
        }
    }

    pub fn has_comments(&self) -> bool {
        matches!(self, Self::Cut(cut) if !cut.comments.is_empty())
    }

    /// Its lines in a block, without indentation.
    pub fn lines(&self, key: &str, manner: Manner) -> Vec<String> {
        let Self::Cut(cut) = self else { return emit::entry(key, self.value(), manner) };
        let Some(behind_key) = &cut.behind_key else {
            return cut.above.iter().cloned().chain(emit::entry(key, &cut.value, manner)).collect();
        };
        let key = emit::text(key, manner);
        let lines = behind_key.iter().enumerate();
        let lines = lines.map(|(index, line)| if index == 0 { format!("{key}{line}") } else { line.clone() });
        cut.above.iter().cloned().chain(lines).collect()
    }
}
