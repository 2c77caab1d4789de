//! What is read together: a folder with `cutlist.yaml`, else a folder of the editor's workspace, else one document alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::adapters::git::{self, ReadError};
use crate::api::settings::FILE_NAME;
use crate::api::source::{SourceFile, Standing, may_hold_definitions};
use crate::cli::arguments::DefinitionArguments;
use crate::cli::lint::places;
use crate::cli::settings;
use crate::core::catalog::regions::DEFAULT_REGION;
use crate::definitions::{Diagnostic, Memory};

/// Which one it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Folder(PathBuf),
    /// The document with this address.
    Alone(String),
}

/// Folders above a document that are looked at. Nobody nests deeper.
const ABOVE_MAX: usize = 64;

/// The folder that a file is read with: the nearest with `cutlist.yaml`, as far up as its repository goes, else the folder of the
/// workspace.
pub fn root_of(path: &Path, workspace: &[PathBuf]) -> Option<PathBuf> {
    for above in path.ancestors().skip(1).take(ABOVE_MAX) {
        if above.join(FILE_NAME).is_file() {
            return Some(above.to_owned());
        }
        if above.join(".git").exists() {
            break;
        }
    }
    let around = workspace.iter().filter(|folder| path.starts_with(folder));
    around.max_by_key(|folder| folder.components().count()).cloned()
}

pub struct Folder {
    root: Option<PathBuf>,
    /// As they are on disk, with what is open in the editor in their place.
    files: Vec<SourceFile>,
    memory: Memory,
    /// Something has changed since it was looked at.
    pub is_changed: bool,
    pub was_looked_at: bool,
    /// It was looked at, and the editor was not told.
    pub is_unpublished: bool,
    /// By the path of the file.
    pub found: BTreeMap<String, Vec<Diagnostic>>,
    pub node_classes: Vec<String>,
    pub region: String,
}

impl Folder {
    fn of(root: Option<PathBuf>, files: Vec<SourceFile>) -> Self {
        Self {
            root,
            files,
            memory: Memory::default(),
            is_changed: true,
            was_looked_at: false,
            is_unpublished: false,
            found: BTreeMap::new(),
            node_classes: Vec::new(),
            region: DEFAULT_REGION.to_owned(),
        }
    }

    pub fn alone(name: String) -> Self {
        Self::of(None, vec![SourceFile::new(name, Vec::new())])
    }

    pub fn read(root: &Path) -> Result<Self, ReadError> {
        Ok(Self::of(Some(root.to_owned()), files(root)?))
    }

    /// Reads what is on disk again. What is known of files that are the same is kept.
    pub fn read_again(&mut self) -> Result<(), ReadError> {
        if let Some(root) = &self.root {
            self.files = files(root)?;
            self.is_changed = true;
        }
        Ok(())
    }

    /// The path of a file in it; `None` for one elsewhere.
    pub fn name_of(&self, path: &Path) -> Option<String> {
        name_below(self.root.as_deref()?, path)
    }

    /// The same of an open document of it.
    pub fn name_of_document(&self, path: Option<&Path>) -> String {
        let only = || self.files.first().map(|file| file.path.clone());
        let name = if self.root.is_some() { path.and_then(|path| self.name_of(path)) } else { only() };
        name.unwrap_or_default()
    }

    /// Whether it has the file, or would have it if it were saved: not one that Git ignores.
    pub fn has(&self, name: &str, is_on_disk: bool) -> bool {
        self.files.iter().any(|file| file.path == name) || (!is_on_disk && may_hold_definitions(name))
    }

    /// Puts the text of a document in the place of its file.
    pub fn lay_over(&mut self, name: &str, text: &str) {
        self.is_changed = true;
        let file = self.files.iter().find(|file| file.path == name);
        // What is written through a link stands where it leads.
        let target = file.and_then(|file| match &file.standing {
            Standing::LinkTo(target) => Some(target.clone()),
            _ => None,
        });
        let place = target.as_deref().unwrap_or(name);
        match self.files.iter_mut().find(|file| file.path == place) {
            Some(file) if file.has_content() => file.content = text.as_bytes().to_vec(),
            Some(_) => {}
            None => self.files.push(SourceFile::new(place, text)),
        }
    }

    /// What a single document is, whatever it is called.
    pub fn lay_over_alone(&mut self, text: &str) {
        if let Some(file) = self.files.first_mut() {
            file.content = text.as_bytes().to_vec();
            self.is_changed = true;
        }
    }

    /// Judges it anew.
    pub fn look(&mut self, arguments: &DefinitionArguments) {
        let folder = self.root.as_deref().map(places::below_root).unwrap_or_default();
        let definitions = settings::lint_definitions_again((&self.files, &folder), arguments, &mut self.memory);
        self.is_changed = false;
        self.was_looked_at = true;
        self.region = definitions.region().name;
        let names: BTreeSet<_> =
            definitions.node_classes.iter().filter_map(|it| it.value.metadata.name.clone()).collect();
        self.node_classes = names.into_iter().collect();
        self.found.clear();
        for diagnostic in definitions.diagnostics {
            self.found.entry(diagnostic.file.clone()).or_default().push(diagnostic);
        }
    }

    /// Where a file of it is on disk.
    pub fn path_of(&self, name: &str) -> Option<PathBuf> {
        let mut path = self.root.clone()?;
        for part in Path::new(name).components() {
            match part {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        Some(path)
    }

    /// As they are on disk, with what is open in the editor in their place.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    pub fn text_of(&self, name: &str) -> &str {
        let file = self.files.iter().find(|file| file.path == name && file.has_content());
        file.and_then(|file| str::from_utf8(&file.content).ok()).unwrap_or_default()
    }
}

/// The path of a file below a folder, as definitions call it.
pub fn name_below(root: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(root).ok()?;
    let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The files of a folder. Those of folders in it that have their own `cutlist.yaml` are judged with that one, and are here only for
/// kustomizations that name them.
fn files(root: &Path) -> Result<Vec<SourceFile>, ReadError> {
    let mut files = git::read_files(root)?.files;
    let folder_of_settings = |file: &SourceFile| {
        let folder = file.path.strip_suffix(FILE_NAME)?.strip_suffix('/')?;
        (file.standing == Standing::Own && !folder.starts_with("..")).then(|| format!("{folder}/"))
    };
    let others: Vec<String> = files.iter().filter_map(folder_of_settings).collect();
    for file in &mut files {
        if file.standing == Standing::Own && others.iter().any(|other| file.path.starts_with(other)) {
            file.standing = Standing::Named;
        }
    }
    Ok(files)
}
