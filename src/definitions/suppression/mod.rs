//! Which findings do not count in the report of `cutlist lint`: those that a comment, an annotation or the settings name. `plan` and
//! `run` never ask.

mod comments;
mod settings;

use std::collections::BTreeSet;

use super::diagnostic::{Span, SuppressedBy};
use super::document::{Document, spans};
use super::findings::{Finding, FindingPlace};
use super::rules::{self, Rule, reading, suppression as own};
use crate::api::keys;

pub use comments::MARK;
pub use settings::Chosen;

/// The lines that the comments of a text are for; `None` for those about the whole file.
pub fn lines_of_comments(text: &str) -> Vec<Option<usize>> {
    comments::find(text).into_iter().map(|comment| comment.line).collect()
}

/// What a comment or an annotation says.
#[derive(Clone, Debug)]
struct Ignore {
    by: SuppressedBy,
    file: usize,
    span: Span,
    scope: IgnoreScope,
    rules: Vec<&'static Rule>,
    reason: String,
}

/// Whose findings it means.
#[derive(Clone, Debug, PartialEq, Eq)]
enum IgnoreScope {
    File,
    Line(usize),
    /// An object by its name, in the files that it is made of.
    Object(Option<String>, BTreeSet<usize>),
}

impl Ignore {
    fn means(&self, finding: &Finding) -> bool {
        let is_there = match &self.scope {
            IgnoreScope::File => finding.file == self.file,
            IgnoreScope::Line(line) => finding.file == self.file && finding.span.line == *line,
            IgnoreScope::Object(name, files) => finding.object == *name && files.contains(&finding.file),
        };
        is_there && self.rules.iter().any(|rule| rule.code == finding.rule.code)
    }
}

/// Everything that comments and annotations say, as it is found while files are read.
#[derive(Debug, Default)]
pub struct Ignores {
    found: Vec<Ignore>,
    malformed: Vec<Finding>,
}

/// Findings that count, and those that do not.
#[derive(Debug, Default)]
pub struct SortedOut {
    pub kept: Vec<Finding>,
    pub suppressed: Vec<(Finding, SuppressedBy, String)>,
}

impl Ignores {
    /// Adds what the comments of a file say.
    pub fn comments(&mut self, file: usize, text: &str) {
        self.near_comments(file, text);
        for comment in comments::find(text) {
            let ignore = |(rules, reason)| Ignore {
                by: SuppressedBy::Comment,
                file,
                span: comment.span,
                scope: comment.line.map_or(IgnoreScope::File, IgnoreScope::Line),
                rules,
                reason,
            };
            match read(&comment.text) {
                Ok(read) => self.found.push(ignore(read)),
                Err(Misread { message, hint }) => {
                    let finding = Finding::at_span(&own::MALFORMED, file, comment.span, message);
                    self.malformed.push(finding.maybe_hint(hint));
                }
            }
        }
    }

    /// Names comments that say nothing to us, and were meant to: what they would suppress is there.
    fn near_comments(&mut self, file: usize, text: &str) {
        for (span, said) in comments::nearly(text).into_iter().filter(|(_, said)| read(said).is_ok()) {
            let message = "the suppression has a space too many: it has no effect";
            let finding = Finding::at_span(&own::MALFORMED, file, span, message);
            self.malformed.push(finding.hint(format!("write it without the space: # {MARK} {said}")));
        }
    }

    /// Adds what the annotation of an object says.
    pub fn annotation(&mut self, document: &Document) {
        let pointer = format!("/metadata/annotations/{}", spans::escape(keys::IGNORE));
        let Some(text) = document.str(&pointer) else { return };
        let (file, span) = (document.file_of(&pointer), document.place(&pointer, FindingPlace::Key));
        let files = document.parts.iter().map(|(_, origin)| origin.file).chain([document.file]).collect();
        let scope = IgnoreScope::Object(document.name(), files);
        for part in text.split(['\n', ';']).map(str::trim).filter(|part| !part.is_empty()) {
            match read(part) {
                Ok((rules, reason)) => {
                    let scope = scope.clone();
                    self.found.push(Ignore { by: SuppressedBy::Annotation, file, span, scope, rules, reason });
                }
                Err(Misread { message, hint }) => {
                    let finding = Finding::at(&own::MALFORMED, document, &pointer, FindingPlace::Key, message);
                    self.malformed.push(finding.maybe_hint(hint));
                }
            }
        }
    }

    /// Sorts the findings. `is_whole`: all of a repository was looked at, so that what concerns several files is known. `path` gives
    /// that of a file.
    pub fn sort_out<'p>(
        mut self,
        findings: Vec<Finding>,
        chosen: &Chosen,
        is_whole: bool,
        path: impl Fn(usize) -> &'p str,
    ) -> SortedOut {
        let mut sorted = SortedOut::default();
        let mut used = BTreeSet::new();
        let cut: BTreeSet<usize> =
            findings.iter().filter(|it| it.rule.code == reading::TOO_MANY.code).map(|it| it.file).collect();
        for finding in findings {
            let mut because = None;
            for ignore in self.found.iter().filter(|ignore| ignore.means(&finding)) {
                used.insert((ignore.file, ignore.span.start_byte, finding.rule.code));
                because.get_or_insert((ignore.by, ignore.reason.clone()));
            }
            match because {
                Some((by, reason)) => sorted.suppressed.push((finding, by, reason)),
                None => sorted.kept.push(finding),
            }
        }
        let mut said = BTreeSet::new();
        for ignore in &self.found {
            for rule in &ignore.rules {
                let key = (ignore.file, ignore.span.start_byte, rule.code);
                // What several files say together is not known from some of them, nor what was cut off, nor what is not in files alone.
                let is_known = (is_whole || !rule.is_of_several()) && !rule.is_of_more_than_files();
                if used.contains(&key) || !is_known || cut.contains(&ignore.file) || !said.insert(key) {
                    continue;
                }
                let message =
                    format!("nothing here is {} {}: the suppression suppresses nothing", rule.code, rule.name);
                let finding = Finding::at_span(&own::UNUSED, ignore.file, ignore.span, message);
                self.malformed.push(finding.hint("remove it"));
            }
        }
        sorted.kept.append(&mut self.malformed);
        chosen.apply(sorted, path)
    }
}

/// Why a suppression is none.
struct Misread {
    message: String,
    hint: Option<String>,
}

/// `CL0123,unpinned-alias reason`: rules by code or name, and why they do not count here.
fn read(text: &str) -> Result<(Vec<&'static Rule>, String), Misread> {
    let form = || Some("write the code of a rule and a reason: CL0464 this image is tried elsewhere".to_owned());
    let text = text.trim();
    let (words, reason) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if words.is_empty() {
        return Err(Misread { message: "the suppression names no rule".to_owned(), hint: form() });
    }
    let mut found = Vec::new();
    for word in words.split(',').filter(|word| !word.is_empty()) {
        found.push(rules::find(word).ok_or_else(|| Misread {
            message: format!("the suppression names no rule: there is no `{word}`"),
            hint: rules::nearest(word).map(|near| format!("there is `{near}`")),
        })?);
    }
    let reason = reason.trim();
    if reason.is_empty() {
        return Err(Misread { message: "the suppression gives no reason: it has no effect".to_owned(), hint: form() });
    }
    Ok((found, reason.to_owned()))
}
