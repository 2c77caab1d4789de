//! One object as its format gives it.

use std::fmt;

use serde_json::Value;

/// One object as its format gives it.
pub(super) enum Object<'a> {
    Json(&'a str),
    Value(Value),
}

/// Where an object stands, for messages.
pub(super) enum ObjectPlace<'a> {
    Byte { text: &'a str, byte: usize },
    Document { number: usize, item: Option<usize> },
}

impl fmt::Display for ObjectPlace<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte { text, byte } => {
                let before = text.get(..*byte).unwrap_or_default();
                write!(formatter, "line {}", before.bytes().filter(|byte| *byte == b'\n').count() + 1)
            }
            Self::Document { number, item: None } => write!(formatter, "document {number}"),
            Self::Document { number, item: Some(item) } => write!(formatter, "document {number}, items[{item}]"),
        }
    }
}
