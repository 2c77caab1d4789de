//! Which documents are read together, and what the editor is told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gen_lsp_types as lsp;

use super::Session;
use crate::cli::lsp::documents::uri_of;
use crate::cli::lsp::folders::{Folder, Key, name_below, root_of};
use crate::cli::lsp::published::{self, Text};
use crate::definitions::Diagnostic;

impl Session<'_> {
    /// What a document is read together with, which is read when it is the first of it.
    pub(super) fn key_of(&mut self, uri: &lsp::Uri, path: Option<&Path>) -> Key {
        let root = path.and_then(|path| root_of(path, &self.client.workspace));
        if let Some((path, root)) = path.zip(root.as_deref()) {
            let key = Key::Folder(root.to_owned());
            self.read_folder(root);
            let name = name_below(root, path).unwrap_or_default();
            if self.folders.get(&key).is_some_and(|folder| folder.has(&name, path.is_file())) {
                return key;
            }
        }
        let key = Key::Alone(uri.to_string());
        // By its whole path below the root, which says whether it may hold definitions.
        let name = path.and_then(|path| name_below(root.as_deref().or(path.parent())?, path));
        let name = name.unwrap_or_else(|| UNTITLED.to_owned());
        self.folders.entry(key.clone()).or_insert_with(|| Folder::alone(name));
        key
    }

    fn read_folder(&mut self, root: &Path) {
        let key = Key::Folder(root.to_owned());
        if self.folders.contains_key(&key) {
            return;
        }
        match Folder::read(root) {
            Ok(folder) => drop(self.folders.insert(key, folder)),
            Err(error) => self.complain(&anyhow::Error::new(error)),
        }
    }

    /// Once for each.
    fn complain(&mut self, error: &anyhow::Error) {
        let message = format!("cutlist: {error:#}: each open file is checked alone");
        if self.complaints.len() < COMPLAINTS_MAX && self.complaints.insert(message.clone()) {
            self.tell::<lsp::LogMessageNotification>(lsp::LogMessageParams {
                kind: lsp::MessageType::Warning,
                message,
            });
        }
    }

    /// Puts the text of a document where it is read.
    pub(super) fn lay_over(&mut self, uri: &str) {
        let Some(document) = self.documents.get(uri) else { return };
        let Some(folder) = self.folders.get_mut(&document.key) else { return };
        match &document.key {
            Key::Alone(_) => folder.lay_over_alone(&document.text),
            Key::Folder(_) => {
                if let Some(name) = document.path.as_deref().and_then(|path| folder.name_of(path)) {
                    folder.lay_over(&name, &document.text);
                }
            }
        }
    }

    /// Reads again what is on disk, where that may be another than what was read, or where the workspace is.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let keys: Vec<Key> = self.folders.keys().cloned().collect();
        for key in keys {
            let error = self.folders.get_mut(&key).and_then(|folder| folder.read_again().err());
            if let Some(error) = error {
                self.folders.remove(&key);
                self.complain(&anyhow::Error::new(error));
            }
        }
        let documents: Vec<(String, Option<PathBuf>)> =
            self.documents.iter().map(|(uri, document)| (uri.clone(), document.path.clone())).collect();
        for (uri, path) in documents {
            let key = self.key_of(&lsp::Uri::from(uri.as_str()), path.as_deref());
            if let Some(document) = self.documents.get_mut(&uri) {
                document.key = key;
            }
            self.lay_over(&uri);
        }
        self.forget_unused();
    }

    /// What no open document is part of is not kept.
    pub(super) fn forget_unused(&mut self) {
        let used: BTreeSet<&Key> = self.documents.values().map(|document| &document.key).collect();
        self.folders.retain(|key, _| used.contains(key));
    }

    /// Judges what has changed, and tells the editor what differs from what it shows.
    pub fn look(&mut self) {
        self.refresh();
        let keys: Vec<Key> = self.folders.keys().cloned().collect();
        for key in keys {
            let Some(folder) = self.folders.get_mut(&key) else { continue };
            if folder.is_changed {
                folder.look(self.arguments);
            } else if !folder.is_unpublished {
                continue;
            }
            folder.is_unpublished = false;
            self.publish(&key);
        }
        let is_gone = |key: &Key| !self.folders.contains_key(key);
        let gone: Vec<String> =
            self.published.iter().filter(|(_, (key, _))| is_gone(key)).map(|(uri, _)| uri.clone()).collect();
        for uri in gone {
            self.clear(&uri);
        }
    }

    /// The addresses of open documents of a folder, by the names that their files have in it.
    pub(super) fn open_of(&self, key: &Key, folder: &Folder) -> BTreeMap<String, String> {
        let of_it = self.documents.iter().filter(|(_, document)| document.key == *key);
        of_it.map(|(uri, document)| (folder.name_of_document(document.path.as_deref()), uri.clone())).collect()
    }

    fn publish(&mut self, key: &Key) {
        let Some(folder) = self.folders.get(key) else { return };
        let open = self.open_of(key, folder);
        let mut shown: BTreeMap<String, Vec<lsp::Diagnostic>> = BTreeMap::new();
        // Of an open document it is said that nothing is found, too.
        shown.extend(open.values().map(|uri| (uri.clone(), Vec::new())));
        for (name, found) in &folder.found {
            // An open document that is read elsewhere is judged there.
            let is_elsewhere = |uri: &String| self.documents.get(uri).is_some_and(|document| document.key != *key);
            if let Some(uri) = uri_in(folder, &open, name).filter(|uri| !is_elsewhere(uri)) {
                shown.insert(uri, self.shown(folder, &open, name, found));
            }
        }
        let old: Vec<String> =
            self.published.iter().filter(|(_, (of, _))| of == key).map(|(uri, _)| uri.clone()).collect();
        for uri in old.iter().filter(|uri| !shown.contains_key(*uri)) {
            self.clear(uri);
        }
        for (uri, diagnostics) in shown {
            if self.published.get(&uri).is_none_or(|(of, known)| of != key || *known != diagnostics) {
                self.show(&uri, diagnostics.clone());
                self.published.insert(uri, (key.clone(), diagnostics));
            }
        }
    }

    fn shown(
        &self,
        folder: &Folder,
        open: &BTreeMap<String, String>,
        name: &str,
        found: &[Diagnostic],
    ) -> Vec<lsp::Diagnostic> {
        let encoding = self.client.encoding;
        let text = Text::of(folder.text_of(name), encoding);
        let related = |diagnostic: &Diagnostic| {
            let places = diagnostic.related.iter().filter_map(|related| {
                let uri = uri_in(folder, open, &related.file)?;
                let text = Text::of(folder.text_of(&related.file), encoding);
                let range = text.range(related.span.start_byte, related.span.end_byte);
                let location = lsp::Location { uri: lsp::Uri::from(uri), range };
                Some(lsp::DiagnosticRelatedInformation { location, message: related.message.clone() })
            });
            self.client.has_related.then(|| places.collect())
        };
        found.iter().map(|diagnostic| published::diagnostic(diagnostic, &text, related(diagnostic))).collect()
    }

    fn clear(&mut self, uri: &str) {
        if self.published.remove(uri).is_some_and(|(_, diagnostics)| !diagnostics.is_empty()) {
            self.show(uri, Vec::new());
        }
    }

    fn show(&mut self, uri: &str, diagnostics: Vec<lsp::Diagnostic>) {
        let version = self.documents.get(uri).map(|document| document.version);
        let parameters = lsp::PublishDiagnosticsParams { uri: lsp::Uri::from(uri), version, diagnostics };
        self.tell::<lsp::PublishDiagnosticsNotification>(parameters);
    }
}

/// What a document is called that has no file.
const UNTITLED: &str = "untitled.yaml";

/// So many complaints are said.
const COMPLAINTS_MAX: usize = 100;

/// The address of a file: the editor's own where it has it open.
pub(super) fn uri_in(folder: &Folder, open: &BTreeMap<String, String>, name: &str) -> Option<String> {
    match open.get(name) {
        Some(uri) => Some(uri.clone()),
        None => Some(uri_of(&folder.path_of(name)?)?.to_string()),
    }
}
