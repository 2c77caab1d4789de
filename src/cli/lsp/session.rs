//! The conversation with an editor: what it opened, what it asks, and what it was told.

use std::collections::{BTreeMap, BTreeSet};

use gen_lsp_types as lsp;
use gen_lsp_types::json_rpc::{Error, Id, RequestObject, ResponseObject};
use gen_lsp_types::{Notification, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::answers::Around;
use super::capabilities::{self, Client};
use super::documents::{Document, path_of};
use super::folders::{Folder, Key};
use super::framing::{FramingError, Incoming};
use crate::cli::arguments::DefinitionArguments;
use crate::definitions::editing::completion::CompletionContext;
use crate::definitions::editing::positions::Lines;

mod names;
mod workspace;

/// Why the conversation is over.
pub enum End {
    Clean,
    /// Without `shutdown`.
    Abrupt,
    Broken(FramingError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begins,
    Open,
    ShutDown,
}

pub struct Session<'a> {
    arguments: &'a DefinitionArguments,
    phase: Phase,
    client: Client,
    /// By their addresses.
    documents: BTreeMap<String, Document>,
    /// One for each that a document is open of.
    folders: BTreeMap<Key, Folder>,
    /// What the editor shows, by the address of the file.
    published: BTreeMap<String, (Key, Vec<lsp::Diagnostic>)>,
    /// What is on disk may be another than what was read.
    is_stale: bool,
    /// What could not be read and was said.
    complaints: BTreeSet<String>,
    outgoing: Vec<String>,
}

impl<'a> Session<'a> {
    pub fn new(arguments: &'a DefinitionArguments) -> Self {
        Self {
            arguments,
            phase: Phase::Begins,
            client: Client::default(),
            documents: BTreeMap::new(),
            folders: BTreeMap::new(),
            published: BTreeMap::new(),
            is_stale: false,
            complaints: BTreeSet::new(),
            outgoing: Vec::new(),
        }
    }

    /// What is to be written since this was last asked.
    pub fn outgoing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outgoing)
    }

    /// Takes messages in their order. What is cancelled behind a request is not worked out.
    pub fn take(&mut self, batch: Vec<Incoming>) -> Option<End> {
        let mut cancelled = batch.iter().filter_map(cancelled).collect::<Vec<Id>>();
        for incoming in batch {
            match incoming {
                Incoming::Message(message) => {
                    if let Some(end) = self.message(message, &mut cancelled) {
                        return Some(end);
                    }
                }
                Incoming::Malformed { id, is_json, why } => {
                    let code = if is_json { lsp::ErrorCodes::InvalidRequest } else { lsp::ErrorCodes::ParseError };
                    self.refuse(id, code, why);
                }
                Incoming::Ended(Some(why)) => return Some(End::Broken(why)),
                Incoming::Ended(None) => return Some(self.end()),
            }
        }
        None
    }

    fn end(&self) -> End {
        if self.phase == Phase::ShutDown { End::Clean } else { End::Abrupt }
    }

    fn message(&mut self, message: RequestObject, cancelled: &mut Vec<Id>) -> Option<End> {
        let (method, id, parameters) = message.into_parts();
        let parameters = parameters.unwrap_or_default();
        match id {
            // An answer to what was asked here: nothing hangs on it.
            Some(_) if method.is_empty() => {}
            Some(id) => {
                let position = cancelled.iter().position(|it| *it == id);
                if let Some(position) = position {
                    cancelled.remove(position);
                    let code = lsp::ErrorCodes::Custom(REQUEST_CANCELLED);
                    self.refuse(id, code, "the editor cancelled it".to_owned());
                } else {
                    self.request(&method, id, parameters);
                }
            }
            None if method == "exit" => return Some(self.end()),
            None if self.phase == Phase::Open => self.notification(&method, parameters),
            None => {}
        }
        None
    }

    fn request(&mut self, method: &str, id: Id, parameters: Value) {
        match (self.phase, method) {
            (Phase::Begins, "initialize") => {
                let Some(parameters) = self.parameters::<lsp::InitializeRequest>(&id, parameters) else { return };
                self.client = Client::of(&parameters);
                self.phase = Phase::Open;
                self.answer::<lsp::InitializeRequest>(id, capabilities::result(self.client.encoding));
            }
            (Phase::Begins, _) => {
                let why = "`initialize` comes first".to_owned();
                self.refuse(id, lsp::ErrorCodes::ServerNotInitialized, why);
            }
            (Phase::Open, "shutdown") => {
                self.phase = Phase::ShutDown;
                self.answer::<lsp::ShutdownRequest>(id, ());
            }
            (Phase::Open, "textDocument/hover") => {
                let Some(parameters) = self.parameters::<lsp::HoverRequest>(&id, parameters) else { return };
                let lsp::TextDocumentPositionParams { text_document, position } =
                    parameters.text_document_position_params;
                let hover = self.around(&text_document.uri, true, |around| around.hover(position)).flatten();
                self.answer::<lsp::HoverRequest>(id, hover);
            }
            (Phase::Open, "textDocument/completion") => {
                let Some(parameters) = self.parameters::<lsp::CompletionRequest>(&id, parameters) else { return };
                let lsp::TextDocumentPositionParams { text_document, position } =
                    parameters.text_document_position_params;
                let found = self.around(&text_document.uri, false, |around| around.completion(position)).flatten();
                self.answer::<lsp::CompletionRequest>(id, found);
            }
            (Phase::Open, "textDocument/definition") => {
                let Some(parameters) = self.parameters::<lsp::DefinitionRequest>(&id, parameters) else { return };
                let found = self.definition(&parameters.text_document_position_params);
                self.answer::<lsp::DefinitionRequest>(id, found);
            }
            (Phase::Open, "textDocument/references") => {
                let Some(parameters) = self.parameters::<lsp::ReferencesRequest>(&id, parameters) else { return };
                let has_givers = parameters.context.include_declaration;
                let found = self.references(&parameters.text_document_position_params, has_givers);
                self.answer::<lsp::ReferencesRequest>(id, found);
            }
            (Phase::Open, "textDocument/prepareRename") => {
                let Some(parameters) = self.parameters::<lsp::PrepareRenameRequest>(&id, parameters) else { return };
                let found = self.renamable(&parameters.text_document_position_params);
                self.answer::<lsp::PrepareRenameRequest>(id, found);
            }
            (Phase::Open, "textDocument/rename") => {
                let Some(parameters) = self.parameters::<lsp::RenameRequest>(&id, parameters) else { return };
                match self.rename(&parameters.text_document_position_params, &parameters.new_name) {
                    Ok(edit) => self.answer::<lsp::RenameRequest>(id, edit),
                    Err(why) => self.refuse(id, lsp::ErrorCodes::Custom(lsp::LspErrorCodes::RequestFailed.into()), why),
                }
            }
            (Phase::Open, "textDocument/documentSymbol") => {
                let Some(parameters) = self.parameters::<lsp::DocumentSymbolRequest>(&id, parameters) else { return };
                let found = self.around(&parameters.text_document.uri, false, |around| around.symbols());
                self.answer::<lsp::DocumentSymbolRequest>(id, found);
            }
            (Phase::Open, "textDocument/codeAction") => {
                let Some(parameters) = self.parameters::<lsp::CodeActionRequest>(&id, parameters) else { return };
                let only = parameters.context.only.as_deref();
                let uri = &parameters.text_document.uri;
                let found = self.around(uri, true, |around| around.actions(parameters.range, only));
                self.answer::<lsp::CodeActionRequest>(id, Some(found.unwrap_or_default()));
            }
            (Phase::Open, "initialize") | (Phase::ShutDown, _) => {
                let why = format!("`{method}` does not come at this time");
                self.refuse(id, lsp::ErrorCodes::InvalidRequest, why);
            }
            (Phase::Open, _) => {
                self.refuse(id, lsp::ErrorCodes::MethodNotFound, format!("there is no `{method}` here"));
            }
        }
    }

    /// What is malformed, or not for us, is passed over: nobody waits for an answer.
    fn notification(&mut self, method: &str, parameters: Value) {
        match method {
            "initialized" if self.client.can_watch => self.ask::<lsp::RegistrationRequest>(capabilities::watching()),
            "textDocument/didOpen" => {
                if let Some(opened) = read::<lsp::DidOpenTextDocumentNotification>(parameters) {
                    self.open(opened.text_document);
                }
            }
            "textDocument/didChange" => {
                if let Some(changed) = read::<lsp::DidChangeTextDocumentNotification>(parameters) {
                    self.change(changed);
                }
            }
            "textDocument/didClose" => {
                if let Some(closed) = read::<lsp::DidCloseTextDocumentNotification>(parameters) {
                    self.close(&closed.text_document.uri);
                }
            }
            "textDocument/didSave" => {
                // An editor that watches files tells of it anyway.
                self.is_stale |= !self.client.can_watch;
            }
            "workspace/didChangeWatchedFiles" => self.is_stale = true,
            "workspace/didChangeWorkspaceFolders" => {
                if let Some(changed) = read::<lsp::DidChangeWorkspaceFoldersNotification>(parameters) {
                    let removed: Vec<_> = changed.event.removed.iter().filter_map(|it| path_of(&it.uri)).collect();
                    self.client.workspace.retain(|folder| !removed.contains(folder));
                    self.client.workspace.extend(changed.event.added.iter().filter_map(|it| path_of(&it.uri)));
                    self.is_stale = true;
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, opened: lsp::TextDocumentItem) {
        let lsp::TextDocumentItem { uri, version, text, .. } = opened;
        let path = path_of(&uri);
        let key = self.key_of(&uri, path.as_deref());
        // Its folder may have been read before there was this file.
        self.is_stale |= path.is_some() && matches!(key, Key::Alone(_));
        let lines = Lines::of(&text);
        let document = Document { path, text, lines, version, key };
        self.documents.insert(uri.to_string(), document);
        self.lay_over(uri.as_ref());
        self.forget_unused();
    }

    fn change(&mut self, changed: lsp::DidChangeTextDocumentParams) {
        let uri = changed.text_document.text_document_identifier.uri.to_string();
        if let Some(document) = self.documents.get_mut(&uri) {
            document.version = changed.text_document.version;
            document.change(changed.content_changes, self.client.encoding);
            self.lay_over(&uri);
        }
    }

    fn close(&mut self, uri: &lsp::Uri) {
        if self.documents.remove(&uri.to_string()).is_some() {
            // What is on disk counts again.
            self.is_stale = true;
        }
    }

    /// Answers for a document that is open; by what is found in it now, where that matters.
    fn around<T>(&mut self, uri: &lsp::Uri, of_now: bool, answer: impl FnOnce(Around<'_>) -> T) -> Option<T> {
        if of_now {
            self.refresh();
        }
        let document = self.documents.get(&uri.to_string())?;
        let folder = self.folders.get_mut(&document.key)?;
        if folder.is_changed && (of_now || !folder.was_looked_at) {
            folder.look(self.arguments);
            folder.is_unpublished = true;
        }
        let name = folder.name_of_document(document.path.as_deref());
        let found = folder.found.get(&name).map(Vec::as_slice).unwrap_or_default();
        let context =
            CompletionContext { file_name: &name, region: &folder.region, node_classes: &folder.node_classes };
        Some(answer(Around { uri, document, client: &self.client, found, context }))
    }

    fn parameters<R: Request>(&mut self, id: &Id, parameters: Value) -> Option<R::Params> {
        match serde_json::from_value(parameters) {
            Ok(parameters) => Some(parameters),
            Err(error) => {
                self.refuse(id.clone(), lsp::ErrorCodes::InvalidParams, error.to_string());
                None
            }
        }
    }

    fn answer<R: Request>(&mut self, id: Id, result: R::Result) {
        self.send(&ResponseObject::from_success::<R>(id, result));
    }

    fn refuse(&mut self, id: Id, code: lsp::ErrorCodes, message: String) {
        self.send(&ResponseObject::from_error(id, Error { code, message, data: None }));
    }

    fn tell<N: Notification>(&mut self, parameters: N::Params) {
        self.send(&RequestObject::from_notification::<N>(parameters));
    }

    /// Of what is asked there is one of each kind, so that its method is its name.
    fn ask<R: Request>(&mut self, parameters: R::Params) {
        let id = Id::String(R::METHOD.as_str().to_owned());
        self.send(&RequestObject::from_request::<R>(id, parameters));
    }

    fn send(&mut self, message: &impl serde::Serialize) {
        // What is made of types of the protocol can be written as JSON.
        self.outgoing.extend(serde_json::to_string(message));
    }
}

/// `RequestCancelled` of the protocol, which is none of JSON-RPC.
const REQUEST_CANCELLED: i32 = -32800;

fn read<N: Notification>(parameters: Value) -> Option<N::Params>
where
    N::Params: DeserializeOwned,
{
    serde_json::from_value(parameters).ok()
}

/// The request that a message cancels.
fn cancelled(incoming: &Incoming) -> Option<Id> {
    let Incoming::Message(message) = incoming else { return None };
    let id = message.params().filter(|_| message.method() == "$/cancelRequest")?.get("id")?;
    serde_json::from_value(id.clone()).ok()
}

#[cfg(test)]
mod tests;
