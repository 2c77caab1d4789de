//! Where what is named at a place gets its name, where else it is named, and how all of that is written anew.

use std::collections::HashMap;

use gen_lsp_types as lsp;

use super::Session;
use super::workspace::uri_in;
use crate::cli::lsp::published::Text;
use crate::definitions::editing::names::{self, Occurrence};

impl Session<'_> {
    /// Where an object is named that is named at a place.
    fn named(&mut self, at: &lsp::TextDocumentPositionParams) -> Vec<(lsp::Location, Occurrence)> {
        self.refresh();
        self.named_in_folder(at).unwrap_or_default()
    }

    fn named_in_folder(&self, at: &lsp::TextDocumentPositionParams) -> Option<Vec<(lsp::Location, Occurrence)>> {
        let document = self.documents.get(&at.text_document.uri.to_string())?;
        let folder = self.folders.get(&document.key)?;
        let here = self.occurrence(at)?;
        let open = self.open_of(&document.key, folder);
        let located = |occurrence: Occurrence| {
            let uri = lsp::Uri::from(uri_in(folder, &open, &occurrence.file)?);
            let text = Text::of(folder.text_of(&occurrence.file), self.client.encoding);
            let range = text.range(occurrence.start, occurrence.end);
            Some((lsp::Location { uri, range }, occurrence))
        };
        Some(names::everywhere(folder.files(), &here).into_iter().filter_map(located).collect())
    }

    fn occurrence(&self, at: &lsp::TextDocumentPositionParams) -> Option<Occurrence> {
        let document = self.documents.get(&at.text_document.uri.to_string())?;
        let folder = self.folders.get(&document.key)?;
        let byte = document.byte(at.position, self.client.encoding);
        names::at(folder.files(), &folder.name_of_document(document.path.as_deref()), byte)
    }

    pub(super) fn definition(&mut self, at: &lsp::TextDocumentPositionParams) -> Option<lsp::DefinitionResponse> {
        let given = self.named(at).into_iter().filter(|(_, occurrence)| occurrence.is_given);
        let mut locations: Vec<lsp::Location> = given.map(|(location, _)| location).collect();
        let definition = match locations.len() {
            0 => return None,
            1 => lsp::Definition::Location(locations.remove(0)),
            _ => lsp::Definition::LocationList(locations),
        };
        Some(lsp::DefinitionResponse::Definition(definition))
    }

    pub(super) fn references(
        &mut self,
        at: &lsp::TextDocumentPositionParams,
        has_givers: bool,
    ) -> Option<Vec<lsp::Location>> {
        let found = self.named(at).into_iter().filter(|(_, occurrence)| has_givers || !occurrence.is_given);
        Some(found.map(|(location, _)| location).collect())
    }

    /// The name that is at a place, if it is one.
    pub(super) fn renamable(&mut self, at: &lsp::TextDocumentPositionParams) -> Option<lsp::PrepareRenameResult> {
        self.refresh();
        let occurrence = self.occurrence(at)?;
        let document = self.documents.get(&at.text_document.uri.to_string())?;
        let range = Text::of(&document.text, self.client.encoding).range(occurrence.start, occurrence.end);
        let placeholder = lsp::PrepareRenamePlaceholder { range, placeholder: occurrence.name };
        Some(lsp::PrepareRenameResult::PrepareRenamePlaceholder(placeholder))
    }

    /// What is to be written for another name, in every file that has this one.
    pub(super) fn rename(
        &mut self,
        at: &lsp::TextDocumentPositionParams,
        name: &str,
    ) -> Result<Option<lsp::WorkspaceEdit>, String> {
        if !names::is_name(name) {
            return Err(format!("no object can be called `{name}`: a name has small letters, digits, `-` and `.`"));
        }
        let mut changes: HashMap<lsp::Uri, Vec<lsp::TextEdit>> = HashMap::new();
        for (location, occurrence) in self.named(at) {
            let edit = lsp::TextEdit { range: location.range, new_text: occurrence.renamed(name) };
            changes.entry(location.uri).or_default().push(edit);
        }
        Ok((!changes.is_empty()).then(|| lsp::WorkspaceEdit { changes: Some(changes), ..Default::default() }))
    }
}
