//! The documents that are open in the editor, as far as it told.

use std::path::PathBuf;

use gen_lsp_types as lsp;
use url::Url;

use super::folders::Key;
use crate::definitions::editing::positions::{Encoding, Lines, Position};

pub struct Document {
    /// Its file, where it has one.
    pub path: Option<PathBuf>,
    pub text: String,
    pub lines: Lines,
    pub version: i32,
    /// What it is read together with.
    pub key: Key,
}

impl Document {
    pub fn replace(&mut self, text: String) {
        self.lines = Lines::of(&text);
        self.text = text;
    }

    /// Takes changes one after the other. A range that is out of the text is as much of it as is there.
    pub fn change(&mut self, changes: Vec<lsp::TextDocumentContentChangeEvent>, encoding: Encoding) {
        for change in changes {
            match change {
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    self.replace(whole.text);
                }
                lsp::TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    let one = self.byte(part.range.start, encoding);
                    let other = self.byte(part.range.end, encoding);
                    let mut text = std::mem::take(&mut self.text);
                    text.replace_range(one.min(other)..one.max(other), &part.text);
                    self.replace(text);
                }
            }
        }
    }

    pub fn byte(&self, at: lsp::Position, encoding: Encoding) -> usize {
        self.lines.byte(&self.text, Position { line: at.line, character: at.character }, encoding)
    }
}

/// The range of bytes of a text as the editor counts.
pub fn range(text: &str, lines: &Lines, start: usize, end: usize, encoding: Encoding) -> lsp::Range {
    let position = |byte| {
        let Position { line, character } = lines.position(text, byte, encoding);
        lsp::Position { line, character }
    };
    lsp::Range { start: position(start), end: position(end) }
}

/// The file of an address; `None` for what is in none, such as a text that was never saved.
pub fn path_of(uri: &lsp::Uri) -> Option<PathBuf> {
    let url = Url::parse(uri.as_ref()).ok().filter(|url| url.scheme() == "file")?;
    url.to_file_path().ok()
}

/// The address of a file.
pub fn uri_of(path: &std::path::Path) -> Option<lsp::Uri> {
    Url::from_file_path(path).ok().map(|url| lsp::Uri::from(url.to_string()))
}
