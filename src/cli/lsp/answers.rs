//! What is answered at a place of a document: documentation, what can be written, what can be done about findings.

use std::borrow::Cow;
use std::collections::HashMap;

use gen_lsp_types as lsp;

use super::capabilities::Client;
use super::documents::Document;
use super::published::{self, Text};
use crate::definitions::editing::completion::{self, Candidate, CompletionContext, What};
use crate::definitions::editing::fields;
use crate::definitions::editing::names;
use crate::definitions::editing::place::{EditPlace, Extent};
use crate::definitions::editing::silencing;
use crate::definitions::editing::values;
use crate::definitions::rules::suppression;
use crate::definitions::{Diagnostic, rule_description};
use crate::render::fields as render;

/// A document, and what is known of it.
pub struct Around<'a> {
    pub uri: &'a lsp::Uri,
    pub document: &'a Document,
    pub client: &'a Client,
    /// What was found in it.
    pub found: &'a [Diagnostic],
    pub context: CompletionContext<'a>,
}

impl Around<'_> {
    fn byte(&self, position: lsp::Position) -> usize {
        self.document.byte(position, self.client.encoding)
    }

    fn text(&self) -> Text<'_> {
        let Document { text, lines, .. } = self.document;
        Text { text, lines: Cow::Borrowed(lines), encoding: self.client.encoding }
    }

    fn markup(&self, value: String) -> lsp::MarkupContent {
        let kind = if self.client.has_markdown { lsp::MarkupKind::Markdown } else { lsp::MarkupKind::PlainText };
        lsp::MarkupContent { kind, value }
    }

    /// The pages of the rules that something is found for there, then the field.
    pub fn hover(&self, position: lsp::Position) -> Option<lsp::Hover> {
        let byte = self.byte(position);
        let mut parts = Vec::new();
        let mut codes: Vec<&str> = Vec::new();
        for found in self.found.iter().filter(|it| (it.span.start_byte..=it.span.end_byte).contains(&byte)) {
            if !codes.contains(&found.code.as_str()) {
                codes.push(&found.code);
                parts.extend(rule_description(&found.code).map(|rule| render::rule(&rule)));
            }
        }
        let place = EditPlace::at(&self.document.text, byte, Extent::WholeWord).filter(|place| !place.word.is_empty());
        let field = place.as_ref().and_then(|place| fields::of_place(place, self.context.file_name));
        parts.extend(field.map(|field| render::field(&field)));
        parts.extend(place.as_ref().and_then(|place| values::meaning(place, self.context.region)));
        if parts.is_empty() {
            return None;
        }
        let range = place.map(|place| self.text().range(place.start, place.end));
        Some(lsp::Hover { contents: lsp::Contents::MarkupContent(self.markup(parts.join("\n---\n\n"))), range })
    }

    /// The objects of the document.
    pub fn symbols(&self) -> lsp::DocumentSymbolResponse {
        let text = self.text();
        let symbol = |it: names::Symbol| {
            let (range, of_name) = (text.range(it.start, it.end), text.range(it.name_start, it.name_end));
            lsp::DocumentSymbol::new(it.name, Some(it.kind), lsp::SymbolKind::Object, None, None, range, of_name, None)
        };
        let symbols = names::symbols(&self.document.text).into_iter().map(symbol);
        lsp::DocumentSymbolResponse::DocumentSymbolList(symbols.collect())
    }

    pub fn completion(&self, position: lsp::Position) -> Option<lsp::CompletionResponse> {
        let place = EditPlace::at(&self.document.text, self.byte(position), Extent::ToPlace)?;
        let found = completion::candidates(&place, &self.context);
        let range = self.text().range(place.start, place.end);
        let items =
            found.candidates.into_iter().enumerate().map(|(number, candidate)| self.item(number, candidate, range));
        let list = lsp::CompletionList { is_incomplete: found.has_more, items: items.collect(), ..Default::default() };
        Some(lsp::CompletionResponse::CompletionList(list))
    }

    fn item(&self, number: usize, candidate: Candidate, range: lsp::Range) -> lsp::CompletionItem {
        let Candidate { label, text, what, field } = candidate;
        let kind = match what {
            What::Field => lsp::CompletionItemKind::Field,
            What::Label => lsp::CompletionItemKind::Property,
            What::Value => lsp::CompletionItemKind::Value,
            What::Object => lsp::CompletionItemKind::Reference,
        };
        let documentation = field.as_ref().filter(|field| !field.path.is_empty()).map(render::field);
        let edit = lsp::TextEdit { range, new_text: text };
        lsp::CompletionItem {
            // In our order.
            sort_text: Some(format!("{number:04}")),
            // What is replaced may begin with a quote.
            filter_text: Some(label.clone()),
            label,
            kind: Some(kind),
            detail: field.map(|field| field.type_name).filter(|name| !name.is_empty()),
            documentation: documentation.map(|text| lsp::Documentation::MarkupContent(self.markup(text))),
            text_edit: Some(lsp::CompletionItemTextEdit::TextEdit(edit)),
            ..Default::default()
        }
    }

    /// Fixes and suppressions for what is found in the range; with `source.fixAll` all fixes of the file.
    pub fn actions(&self, range: lsp::Range, only: Option<&[lsp::CodeActionKind]>) -> Vec<lsp::CodeActionResponse> {
        let (one, other) = (self.byte(range.start), self.byte(range.end));
        let (start, end) = (one.min(other), one.max(other));
        let wants = |kind: &lsp::CodeActionKind| match only {
            // Only where it is asked for: it is what runs when a file is saved.
            None => *kind == lsp::CodeActionKind::QuickFix,
            Some(only) => only.iter().any(|it| is_kind_of(kind, it)),
        };
        let mut actions = Vec::new();
        if wants(&lsp::CodeActionKind::QuickFix) {
            for found in self.found.iter().filter(|it| it.span.start_byte <= end && it.span.end_byte >= start) {
                actions.extend(self.fix(found));
                actions.extend(self.silence(found));
            }
        }
        if wants(&lsp::CodeActionKind::SourceFixAll) {
            actions.extend(self.fix_all());
        }
        actions.into_iter().map(lsp::CodeActionResponse::CodeAction).collect()
    }

    fn fix(&self, found: &Diagnostic) -> Option<lsp::CodeAction> {
        let fix = found.fix.as_ref()?;
        let title = match fix.text.as_str() {
            "" => "Remove it".to_owned(),
            // Of several parts that go.
            text if text.contains('\n') => "Remove it, and keep what stands between".to_owned(),
            text => format!("Write {text}"),
        };
        let edits = vec![self.edit(fix.span.start_byte, fix.span.end_byte, &fix.text)];
        let action = self.action(title, lsp::CodeActionKind::QuickFix, edits);
        Some(lsp::CodeAction { is_preferred: Some(true), diagnostics: Some(vec![self.diagnostic(found)]), ..action })
    }

    fn silence(&self, found: &Diagnostic) -> Option<lsp::CodeAction> {
        // What is wrong with suppressions can not be suppressed.
        if suppression::RULES.iter().any(|rule| rule.code == found.code) {
            return None;
        }
        let insertion = silencing::comment(&self.document.text, found.span.start_byte, &found.code)?;
        let edits = vec![self.edit(insertion.byte, insertion.byte, &insertion.text)];
        let title = format!("Suppress {} {} here, with a comment", found.code, found.rule);
        let action = self.action(title, lsp::CodeActionKind::QuickFix, edits);
        Some(lsp::CodeAction { diagnostics: Some(vec![self.diagnostic(found)]), ..action })
    }

    fn fix_all(&self) -> Option<lsp::CodeAction> {
        let mut fixes: Vec<_> = self.found.iter().filter_map(|found| found.fix.as_ref()).collect();
        fixes.sort_by_key(|fix| (fix.span.start_byte, fix.span.end_byte));
        let mut done = 0;
        // Of two that overlap the first counts, as for `lint --fix`.
        fixes.retain(|fix| {
            let is_next = fix.span.start_byte >= done;
            done = if is_next { fix.span.end_byte } else { done };
            is_next
        });
        let edits: Vec<_> =
            fixes.iter().map(|fix| self.edit(fix.span.start_byte, fix.span.end_byte, &fix.text)).collect();
        let title = "Fix what is mechanical in this file".to_owned();
        (!edits.is_empty()).then(|| self.action(title, lsp::CodeActionKind::SourceFixAll, edits))
    }

    fn edit(&self, start: usize, end: usize, text: &str) -> lsp::TextEdit {
        lsp::TextEdit { range: self.text().range(start, end), new_text: text.to_owned() }
    }

    fn diagnostic(&self, found: &Diagnostic) -> lsp::Diagnostic {
        published::diagnostic(found, &self.text(), None)
    }

    fn action(&self, title: String, kind: lsp::CodeActionKind, edits: Vec<lsp::TextEdit>) -> lsp::CodeAction {
        let changes = HashMap::from([(self.uri.clone(), edits)]);
        let edit = lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() };
        lsp::CodeAction { title, kind: Some(kind), edit: Some(edit), ..Default::default() }
    }
}

/// Kinds are paths: `source` asks for `source.fixAll` as well.
fn is_kind_of(kind: &lsp::CodeActionKind, asked: &lsp::CodeActionKind) -> bool {
    match asked {
        lsp::CodeActionKind::Empty => true,
        lsp::CodeActionKind::Source => *kind == lsp::CodeActionKind::SourceFixAll,
        // Editors ask for the one of a server so.
        lsp::CodeActionKind::Custom(name) => {
            *kind == lsp::CodeActionKind::SourceFixAll && name == "source.fixAll.cutlist"
        }
        other => kind == other,
    }
}
