//! What this server and the editor agree on when they begin.

use std::path::PathBuf;

use gen_lsp_types as lsp;

use super::documents::path_of;
use crate::definitions::editing::positions::Encoding;

/// What is known of the editor.
#[derive(Debug, Default)]
pub struct Client {
    pub encoding: Encoding,
    /// Folders that are open.
    pub workspace: Vec<PathBuf>,
    /// It tells of files that change on disk, when it is asked to.
    pub can_watch: bool,
    /// It shows places beside that of a finding.
    pub has_related: bool,
    /// It shows Markdown.
    pub has_markdown: bool,
}

impl Client {
    #[expect(deprecated, reason = "editors that know one folder only still send `rootUri`")]
    pub fn of(parameters: &lsp::InitializeParams) -> Self {
        let capabilities = &parameters.capabilities;
        let offered = capabilities.general.as_ref().and_then(|general| general.position_encodings.as_ref());
        let offers = |kind: &lsp::PositionEncodingKind| offered.is_some_and(|offered| offered.contains(kind));
        // Bytes need no counting here.
        let encoding = if offers(&lsp::PositionEncodingKind::UTF8) { Encoding::Utf8 } else { Encoding::Utf16 };
        let watching = capabilities.workspace.as_ref().and_then(|it| it.did_change_watched_files.as_ref());
        let text = capabilities.text_document.as_ref();
        let publishing = text.and_then(|text| text.publish_diagnostics.as_ref());
        let hover = text.and_then(|text| text.hover.as_ref()).and_then(|hover| hover.content_format.as_ref());
        let workspace = match &parameters.workspace_folders_initialize_params.workspace_folders {
            Some(lsp::WorkspaceFolders::WorkspaceFolderList(folders)) => {
                folders.iter().filter_map(|folder| path_of(&folder.uri)).collect()
            }
            Some(lsp::WorkspaceFolders::Null) | None => parameters.root_uri.iter().filter_map(path_of).collect(),
        };
        Self {
            encoding,
            workspace,
            can_watch: watching.and_then(|it| it.dynamic_registration).unwrap_or_default(),
            has_related: publishing.and_then(|it| it.diagnostics_capabilities.related_information).unwrap_or_default(),
            has_markdown: hover.is_none_or(|formats| formats.contains(&lsp::MarkupKind::Markdown)),
        }
    }
}

/// What this server can do.
pub fn result(encoding: Encoding) -> lsp::InitializeResult {
    let sync = lsp::TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(lsp::TextDocumentSyncKind::Incremental),
        save: Some(lsp::Save::Bool(true)),
        ..Default::default()
    };
    let actions = lsp::CodeActionOptions {
        code_action_kinds: Some(vec![lsp::CodeActionKind::QuickFix, lsp::CodeActionKind::SourceFixAll]),
        ..Default::default()
    };
    let completion = lsp::CompletionOptions {
        trigger_characters: Some([" ", ":", "[", ",", "\"", "/", "."].map(str::to_owned).to_vec()),
        ..Default::default()
    };
    let folders = lsp::WorkspaceFoldersServerCapabilities {
        supported: Some(true),
        change_notifications: Some(lsp::ChangeNotifications::Bool(true)),
    };
    let capabilities = lsp::ServerCapabilities {
        position_encoding: Some(match encoding {
            Encoding::Utf8 => lsp::PositionEncodingKind::UTF8,
            Encoding::Utf16 => lsp::PositionEncodingKind::UTF16,
            Encoding::Utf32 => lsp::PositionEncodingKind::UTF32,
        }),
        text_document_sync: Some(lsp::TextDocumentSync::Options(sync)),
        hover_provider: Some(lsp::HoverProvider::Bool(true)),
        definition_provider: Some(lsp::DefinitionProvider::Bool(true)),
        references_provider: Some(lsp::ReferencesProvider::Bool(true)),
        document_symbol_provider: Some(lsp::DocumentSymbolProvider::Bool(true)),
        rename_provider: Some(lsp::RenameProvider::RenameOptions(lsp::RenameOptions {
            prepare_provider: Some(true),
            ..Default::default()
        })),
        completion_provider: Some(completion),
        code_action_provider: Some(lsp::CodeActionProvider::CodeActionOptions(actions)),
        workspace: Some(lsp::WorkspaceOptions { workspace_folders: Some(folders), ..Default::default() }),
        ..Default::default()
    };
    let version = Some(env!("CARGO_PKG_VERSION").to_owned());
    lsp::InitializeResult { capabilities, server_info: Some(lsp::ServerInfo { name: "cutlist".to_owned(), version }) }
}

/// Files of which it matters that they changed on disk.
const WATCHED: [&str; 2] = ["**/*.{yaml,yml,json}", "**/cutlist.lock"];

/// Asks the editor to tell when they do.
pub fn watching() -> lsp::RegistrationParams {
    let watcher = |pattern: &str| lsp::FileSystemWatcher {
        glob_pattern: lsp::GlobPattern::Pattern(pattern.to_owned()),
        kind: None,
    };
    let options = lsp::DidChangeWatchedFilesRegistrationOptions { watchers: WATCHED.map(watcher).to_vec() };
    let registration = lsp::Registration {
        id: "definitions".to_owned(),
        method: "workspace/didChangeWatchedFiles".to_owned(),
        register_options: serde_json::to_value(options).ok(),
    };
    lsp::RegistrationParams { registrations: vec![registration] }
}
