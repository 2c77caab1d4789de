//! Where what was typed, `cutlist.yaml` and the environment become one; and where definitions are read from disk.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::arguments::DefinitionArguments;
use crate::api::source::SourceFile;
use crate::definitions::{self, Definitions};

/// Names that every shell sets. A `${PATH}` in user data is for the instance's shell, and must not become that of the
/// machine on which the definitions are read.
const OF_THE_SHELL: [&str; 16] = [
    "EDITOR", "HOME", "HOSTNAME", "IFS", "LANG", "LOGNAME", "OLDPWD", "PATH", "PPID", "PS1", "PWD", "SHELL", "SHLVL",
    "TERM", "UID", "USER",
];

/// What a folder may hold. Beyond it the folder is hardly one of definitions.
const FILES_MAX: usize = 100_000;
/// Bytes of all files together.
const BYTES_MAX: u64 = 1 << 30;

/// Reads definitions with their variables: those typed, then those of `cutlist.yaml`, then those of the environment,
/// as far as their names occur in the files.
pub fn read_definitions(files: &[SourceFile], arguments: &DefinitionArguments) -> Definitions {
    definitions::read(files, &variables(files, arguments, |name| std::env::var(name).ok()))
}

/// The variables that override those of `cutlist.yaml`, and those that it lacks.
fn variables(
    files: &[SourceFile],
    arguments: &DefinitionArguments,
    environment: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let own = definitions::settings_variables(files);
    let names = definitions::variable_names(files).into_iter();
    let missing = names.filter(|name| !own.contains_key(name) && !OF_THE_SHELL.contains(&name.as_str()));
    let from_environment = missing.filter_map(|name| environment(&name).map(|value| (name, value)));
    from_environment.chain(arguments.variables.iter().cloned()).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    #[error("{} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is neither a folder nor a .yaml, .yml or .json file", .0.display())]
    NotDefinitions(PathBuf),
    #[error("{} holds more than {FILES_MAX} files or {} MiB of definitions", .0.display(), BYTES_MAX >> 20)]
    TooMuch(PathBuf),
}

/// Every file under the folder `root` that may hold definitions, paths relative to it and sorted. Folders that start
/// with a dot are left out, and links are not followed: they may lead out of the folder, or in circles.
pub fn files_of_folder(root: &Path) -> Result<Vec<SourceFile>, FilesError> {
    let mut files = Vec::new();
    let mut bytes = 0;
    let mut folders = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let unreadable = |source| FilesError::Unreadable { path: folder.clone(), source };
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            let kind = entry.file_type().map_err(unreadable)?;
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                folders.push((entry.path(), format!("{path}/")));
            } else if kind.is_file() && definitions::is_candidate(&path) {
                let content = read_file(&entry.path())?;
                bytes += content.len() as u64;
                files.push(SourceFile { path, content });
                if files.len() > FILES_MAX || bytes > BYTES_MAX {
                    return Err(FilesError::TooMuch(root.to_owned()));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What a path that was typed stands for.
pub enum Given {
    /// Paths relative to the folder.
    Folder(Vec<SourceFile>),
    /// Its path is its name.
    File(SourceFile),
}

/// Reads a folder or a file.
pub fn given(path: &Path) -> Result<Given, FilesError> {
    let metadata = std::fs::metadata(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => FilesError::Missing(path.to_owned()),
        _ => FilesError::Unreadable { path: path.to_owned(), source },
    })?;
    if metadata.is_dir() {
        return files_of_folder(path).map(Given::Folder);
    }
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if !metadata.is_file() || !matches!(name.rsplit('.').next(), Some("yaml" | "yml" | "json")) {
        return Err(FilesError::NotDefinitions(path.to_owned()));
    }
    Ok(Given::File(SourceFile { path: name.to_owned(), content: read_file(path)? }))
}

fn read_file(path: &Path) -> Result<Vec<u8>, FilesError> {
    std::fs::read(path).map_err(|source| FilesError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_beats_the_file_beats_the_environment() {
        let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), content: text.as_bytes().to_vec() };
        let files = [
            file(
                "cutlist.yaml",
                "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { variables: { B: file, C: file } }",
            ),
            file("a.yaml", "x: ${A} ${B} ${C} ${PATH}"),
        ];
        let arguments = DefinitionArguments { variables: vec![("C".to_owned(), "typed".to_owned())] };
        let environment = |name: &str| Some(format!("environment {name}"));
        let expected = [("A", "environment A"), ("C", "typed")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(variables(&files, &arguments, environment), expected);
    }
}
