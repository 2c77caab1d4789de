//! Which files are read together, and by which paths the user knows them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glob::MatchOptions;

use super::places;
use crate::adapters::git::{self, ReadError};
use crate::api::source::{SourceFile, Standing};
use crate::api::{image_lock, kustomization, scenario, settings as settings_file};
use crate::cli::exit::Failure;
use crate::cli::settings::Called;
use crate::cli::{inputs, output};
use crate::core::plan::NoteCode;
use crate::ports::RevisionContent;

/// Files that are read together: names are unique in them, and a pool finds its class in them.
#[derive(Clone, Default)]
pub struct Set {
    pub files: Vec<SourceFile>,
    /// The folder that they are called from, by its path from the root of their repository. Empty where they are of several.
    pub folder: String,
    /// The paths of the files as the user knows them.
    typed: BTreeMap<String, String>,
}

impl Set {
    pub fn typed(&self, path: &str) -> String {
        self.typed.get(path).cloned().unwrap_or_else(|| path.to_owned())
    }

    /// What is asked of these files beyond what they say.
    pub fn called(&self) -> Called<'_> {
        Called { files: &self.files, folder: &self.folder, typed: &self.typed }
    }

    /// Adds how the user calls files that were among these at another time.
    pub fn know_files_of(&mut self, earlier: &Self) {
        for (path, typed) in &earlier.typed {
            self.typed.entry(path.clone()).or_insert_with(|| typed.clone());
        }
    }

    /// Takes out the file that the user calls so.
    pub fn leave_out(&mut self, typed: &str) {
        let relative = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
        let is_other = |file: &SourceFile| {
            let path = self.typed.get(&file.path).map_or(file.path.as_str(), String::as_str);
            relative(path) != relative(typed)
        };
        self.files.retain(is_other);
    }
}

/// The files as they are, or as they were at a revision. A folder with its own `cutlist.yaml` is a repository by itself; everything else that was typed belongs together.
pub fn sets(paths: &[PathBuf], revision: Option<&str>) -> Result<Vec<Set>, Failure> {
    let paths = expanded(paths)?;
    let mut sets = Vec::new();
    let mut others = Vec::new();
    for path in &paths {
        let content = read(path, revision)?;
        tell_what_is_left_out(&content, revision);
        let is_root = content.files.iter().any(|file| {
            [settings_file::FILE_NAME, scenario::FILE_NAME, image_lock::FILE_NAME].contains(&file.path.as_str())
        });
        if is_root || (!path.is_file() && paths.len() == 1) {
            let typed = content.files.iter().map(|file| (file.path.clone(), typed(path, &file.path))).collect();
            sets.push(Set { files: content.files, folder: places::below_root(folder_of(path)), typed });
        } else {
            others.push((path.as_path(), content.files));
        }
    }
    let together = together(others);
    if !together.files.is_empty() {
        sets.push(together);
    }
    Ok(sets)
}

/// What was asked for and is not among the files. Of an earlier revision nobody is told.
fn tell_what_is_left_out(content: &RevisionContent, revision: Option<&str>) {
    let notes = content.notes.iter().filter(|note| note.code == NoteCode::LeftOut && revision.is_none());
    notes.for_each(|note| output::say(&format!("note: {}", note.text)));
}

/// The paths, with those in the place of a pattern that it stands for: shells leave one in quotes as it is, and programs start others without a
/// shell.
fn expanded(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    // As shells do it: what begins with a dot is not meant.
    let options =
        MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };
    let mut expanded = Vec::new();
    for path in paths {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']));
        let Some(pattern) = pattern.filter(|_| path.symlink_metadata().is_err()) else {
            expanded.push(path.clone());
            continue;
        };
        let found = glob::glob_with(pattern, options);
        let found =
            found.map_err(|error| Failure::usage(anyhow::anyhow!("{pattern} is no pattern of paths: {error}")))?;
        // In the order of their names; what can not be looked into has no matches.
        let before = expanded.len();
        expanded.extend(found.filter_map(Result::ok));
        if expanded.len() == before {
            let error = anyhow::anyhow!("{pattern} matches no file and no folder");
            let hint = "`*` stands for a part of one name, and `**` for any number of folders";
            return Err(Failure::usage(error).with_hint(hint));
        }
    }
    Ok(expanded)
}

fn read(path: &Path, revision: Option<&str>) -> Result<RevisionContent, Failure> {
    if inputs::is_stdin(path) {
        if revision.is_some() {
            let error = anyhow::anyhow!("what comes from standard input has no revisions");
            return Err(Failure::usage(error).with_hint("name files or folders of a clone"));
        }
        return inputs::definitions_of_stdin();
    }
    let content = match revision {
        None => git::read_files(path),
        Some(reference) => match git::read_revision(path, reference) {
            // All of it is new.
            Err(ReadError::PathNotInRevision { .. }) => Ok(git::of_text("nothing.yaml", Vec::new(), reference)),
            other => other,
        },
    };
    content.map_err(Failure::of_repository)
}

/// The folder that the files of what was typed are called from.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|_| path.is_file()).unwrap_or(path)
}

/// The path of a file as the user would write it, given what was typed.
fn typed(path: &Path, file: &str) -> String {
    if inputs::is_stdin(path) {
        return inputs::STDIN_SHOWN.to_owned();
    }
    let folder = folder_of(path).display().to_string();
    // Above what was typed, as short as it can be written.
    if file.starts_with("..")
        && let Some(above) = kustomization::join(&folder, file)
    {
        return above;
    }
    match folder.as_str() {
        "" => file.to_owned(),
        "." if !path.is_file() => file.to_owned(),
        folder if folder.ends_with('/') => format!("{folder}{file}"),
        folder => format!("{folder}/{file}"),
    }
}

/// Files of different folders in one set, where each is called by its place on disk: a file that was typed twice, or that
/// lies in a folder that was typed as well, is one file.
fn together(paths: Vec<(&Path, Vec<SourceFile>)>) -> Set {
    let mut places: BTreeMap<PathBuf, (SourceFile, String)> = BTreeMap::new();
    for (path, files) in paths {
        let folder = Some(folder_of(path)).filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        for file in files {
            // What a link was followed to has that path; a link of its own keeps the one it has.
            let lexical =
                kustomization::join(&root.to_string_lossy(), &file.path).map(|below| Path::new("/").join(below));
            let lexical = lexical.unwrap_or_else(|| root.join(&file.path));
            let place = if file.has_content() { lexical.canonicalize().unwrap_or(lexical) } else { lexical };
            let shown = typed(path, &file.path);
            match places.get_mut(&place) {
                // What was asked for in one place is not only named by a kustomization in another.
                Some((known, known_shown)) if known.standing != Standing::Own && file.standing == Standing::Own => {
                    (*known, *known_shown) = (file, shown);
                }
                Some(_) => {}
                None => {
                    places.insert(place, (file, shown));
                }
            }
        }
    }
    let mut set = Set::default();
    let above = common(places.keys());
    for (place, (file, shown)) in places {
        let below = place.strip_prefix(&above).unwrap_or(&place);
        // A folder that was typed is read, whatever it is called.
        let parts = below.iter().map(|part| part.to_string_lossy());
        let parts = parts.map(|part| part.strip_prefix('.').map_or(part.clone(), |rest| format!("_{rest}").into()));
        let path = parts.collect::<Vec<_>>().join("/");
        set.typed.insert(path.clone(), shown);
        set.files.push(SourceFile { path, ..file });
    }
    set
}

/// The folder that holds all the files.
fn common<'p>(places: impl Iterator<Item = &'p PathBuf>) -> PathBuf {
    let folders = places.filter_map(|place| place.parent().map(Path::to_owned));
    let shared = |one: PathBuf, other: PathBuf| {
        one.iter().zip(other.iter()).take_while(|(one, other)| one == other).map(|(part, _)| part).collect()
    };
    folders.reduce(shared).unwrap_or_default()
}

/// The text of each file by its path as it was typed.
pub fn texts(sets: &[Set]) -> BTreeMap<String, &str> {
    let files = sets.iter().flat_map(|set| {
        set.files.iter().filter(|file| file.has_content()).map(move |file| (set.typed(&file.path), file))
    });
    files.filter_map(|(path, file)| Some((path, str::from_utf8(&file.content).ok()?))).collect()
}
