//! Text to documents. The files that may be needed are parsed, at once. A file that did not change is not parsed again.

use std::sync::Arc;

use rayon::prelude::*;

use super::context::Context;
use super::counted::Counted;
use super::diagnostic::Span;
use super::document::{self, Parsed};
use super::findings::Finding;
use super::made::is_asked_for;
use super::memory::{JudgedOfFile, Memory};
use super::rules::reading;
use super::{flux, limits};
use crate::api::kustomization;
use crate::api::source::SourceFile;

/// Every file, with what is known of its documents from an earlier reading.
pub fn known_or_parsed(
    sources: &[&SourceFile],
    context: &Context,
    memory: Option<&mut Memory>,
    counted: &Counted,
) -> (Vec<Parsed>, Vec<JudgedOfFile>) {
    let parse = parser(sources, context);
    let parse = |index: usize, source: &SourceFile| match counted.is_too_much() {
        true => Parsed::default(),
        false => parse(index, source),
    };
    let (parsed, known): (Vec<Parsed>, Vec<JudgedOfFile>) = match memory {
        None => {
            let parsed = sources.par_iter().enumerate().map(|(index, source)| {
                let parsed = parse(index, source);
                counted.add(&parsed);
                parsed
            });
            (parsed.collect(), Vec::new())
        }
        Some(memory) => {
            memory.begin(sources, context);
            let known_or_parsed = |(index, source): (usize, &&SourceFile)| {
                let known = memory.recall(index, source);
                let (parsed, judged) = known.unwrap_or_else(|| (parse(index, source), JudgedOfFile::new()));
                counted.add(&parsed);
                (parsed, judged)
            };
            sources.iter().enumerate().map(known_or_parsed).unzip()
        }
    };
    if counted.is_too_much() {
        // Which files were parsed before the limit was reached is by chance.
        let none = |_| (Parsed::default(), JudgedOfFile::new());
        return sources.iter().map(none).unzip();
    }
    (parsed, known)
}

/// Parses every file that may be needed: of a repository with kustomizations also those that the settings leave out.
fn parser<'c>(sources: &[&SourceFile], context: &'c Context) -> impl Fn(usize, &SourceFile) -> Parsed + use<'c> {
    let has_kustomizations = sources.iter().any(|source| kustomization::is_file(&source.path));
    // Nothing else of what the settings leave out is needed.
    let is_told = !has_kustomizations && !context.paths.is_empty() && flux::is_told(sources);
    move |index, source| {
        let is_needed =
            has_kustomizations || is_asked_for(source, &context.paths) || (is_told && flux::may_tell(source));
        let is_baseline = context.baseline.as_deref() == Some(source.path.as_str());
        if !source.has_content() || !is_needed || is_baseline || context.template_of(&source.path).is_some() {
            return Parsed::default();
        }
        match text_of(index, source) {
            Ok(text) => {
                let mut parsed = document::parse(index, &text);
                if source.path.ends_with(".json") {
                    parsed.hold_to_json(index, &text);
                }
                parsed
            }
            Err(finding) => Parsed::of_no_text(*finding, &source.content),
        }
    }
}

/// The file as text.
fn text_of(index: usize, source: &SourceFile) -> Result<Arc<str>, Box<Finding>> {
    let content = &source.content;
    if content.len() > limits::FILE_BYTES {
        let message =
            format!("the file has {} bytes, more than the {} that are read", content.len(), limits::FILE_BYTES);
        return Err(Box::new(Finding::at_span(&reading::TOO_LARGE, index, Span::start(), message)));
    }
    if let Some(encoding) = other_encoding(content) {
        let message = format!("the file is {encoding}, not UTF-8");
        let finding = Finding::at_span(&reading::ENCODING, index, Span::start(), message);
        return Err(Box::new(finding.hint("save it as UTF-8; what `>` of Windows PowerShell writes is UTF-16")));
    }
    str::from_utf8(content).map(Into::into).map_err(|error| {
        let before = &content[..error.valid_up_to()];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let span = Span { line, column, start_byte: before.len(), end_byte: before.len() };
        Box::new(
            Finding::at_span(&reading::ENCODING, index, span, "the file is not UTF-8 text").hint("save it as UTF-8"),
        )
    })
}

/// What the zeros say that other encodings put beside letters; UTF-8 has none in text. A mark at the beginning says it as well.
fn other_encoding(content: &[u8]) -> Option<&'static str> {
    /// The beginning of a file shows what it is.
    const LOOKED_AT: usize = 4_096;
    let beginning = content.get(..LOOKED_AT).unwrap_or(content);
    let zeros = beginning.iter().filter(|byte| **byte == 0).count();
    // Letters of Europe and America have one zero of two bytes, or three of four.
    if zeros * 5 > beginning.len() * 3 {
        Some("UTF-32")
    } else if zeros * 4 > beginning.len() || content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]) {
        Some("UTF-16")
    } else {
        None
    }
}
