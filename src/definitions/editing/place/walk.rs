//! Asks the parser where the end of a text is.

use std::collections::BTreeMap;

use granit_parser::{Event, Options, Parser, ScalarStyle};

use super::{Role, lines};
use crate::definitions::limits;

/// Stands for what is typed. A character that nobody types: it is for private use.
const MARK: char = '\u{e000}';

pub struct Cursor {
    pub path: Vec<String>,
    pub role: Role,
    pub members: Vec<BTreeMap<String, String>>,
}

enum Frame {
    Mapping { pending: Option<String>, members: BTreeMap<String, String> },
    Sequence { next: usize },
}

/// Where the end of `prefix` is, read as a value, or as a key whose colon is still to come; inside `quote`. The parser wants brackets to be
/// closed before it says what is in them.
pub fn find(prefix: &str, quote: Option<char>) -> Option<Cursor> {
    let quote = quote.map(String::from).unwrap_or_default();
    let closers = lines::closers(prefix);
    let ends = [format!("{MARK}{quote}{closers}"), format!("{MARK}{quote}: {closers}")];
    ends.iter().find_map(|end| walk(&format!("{prefix}{end}")))
}

fn walk(text: &str) -> Option<Cursor> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = 4 * limits::DEPTH;
    options.block_nesting_limit = 4 * limits::DEPTH;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut stack: Vec<Frame> = Vec::new();
    // What is broken above the mark ends this.
    while let Some(Ok((event, _))) = parser.next_event() {
        match event {
            Event::MappingStart(..) => stack.push(Frame::Mapping { pending: None, members: BTreeMap::new() }),
            Event::SequenceStart(..) => stack.push(Frame::Sequence { next: 0 }),
            Event::MappingEnd | Event::SequenceEnd => {
                stack.pop();
                passed(&mut stack, String::new());
            }
            Event::Scalar(text, style, ..) if text.contains(MARK) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                return (!is_block).then(|| found(stack));
            }
            Event::Scalar(text, ..) => passed(&mut stack, text.into_owned()),
            Event::Alias(_) => passed(&mut stack, String::new()),
            _ => {}
        }
    }
    None
}

/// A key or value was read to its end.
fn passed(stack: &mut [Frame], text: String) {
    match stack.last_mut() {
        Some(Frame::Mapping { pending, members }) => match pending.take() {
            Some(key) => {
                members.insert(key, text);
            }
            None => *pending = Some(text),
        },
        Some(Frame::Sequence { next }) => *next += 1,
        None => {}
    }
}

fn found(stack: Vec<Frame>) -> Cursor {
    let mut found = Cursor { path: Vec::new(), role: Role::Value, members: Vec::new() };
    for frame in stack {
        match frame {
            Frame::Mapping { pending, members } => {
                match pending {
                    Some(key) => found.path.push(key),
                    None => found.role = Role::Key,
                }
                found.members.push(members);
            }
            Frame::Sequence { next } => {
                found.path.push(next.to_string());
                found.members.push(BTreeMap::new());
            }
        }
    }
    found
}
