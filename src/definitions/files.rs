//! Which files of a repository are looked at.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use crate::api::kustomization::folder;
use crate::api::source::SourceFile;
use crate::api::{image_lock, kustomization, scenario, settings};

pub use crate::api::source::may_hold_definitions as is_candidate;

/// Whether `paths` of the settings let the file in; without any, all are. Settings, scenario and image lock always are.
pub fn is_selected(path: &str, paths: &[String]) -> bool {
    is_of_root(path) || paths.is_empty() || paths.iter().any(|entry| covers(entry, path))
}

/// Whether it is one of the files that are Cutlist's own.
pub fn is_of_root(path: &str) -> bool {
    [settings::FILE_NAME, scenario::FILE_NAME, image_lock::FILE_NAME].contains(&path)
}

/// Whether `entry`, a file or folder as people write it (`./pools/`), is or holds `path`.
pub fn covers(entry: &str, path: &str) -> bool {
    let entry = entry.trim_start_matches("./").trim_matches('/');
    entry.is_empty()
        || entry == "."
        || path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What `by_folder` has for the nearest folder around a file, with that folder.
pub fn nearest<'v, K: Borrow<str> + Ord, T>(by_folder: &'v BTreeMap<K, T>, path: &str) -> Option<(&'v str, &'v T)> {
    let mut around = folder(path);
    loop {
        if let Some((found, value)) = by_folder.get_key_value(around) {
            return Some((found.borrow(), value));
        }
        if around.is_empty() {
            return None;
        }
        around = folder(around);
    }
}

/// Each folder that the file lies in, from the nearest. The root is left out, as it is there in any repository.
pub fn folders_around(path: &str) -> impl Iterator<Item = &str> {
    let nearest = Some(folder(path));
    std::iter::successors(nearest, |it| Some(folder(it))).take_while(|it| !it.is_empty())
}

/// What makes a folder a Helm chart. Some release tools write the last words of it first into a template.
const CHART_FILES: [&str; 3] = ["Chart.yaml", "Chart-template.yaml", "Chart.template.yaml"];

/// Templates of Helm charts: files under `templates/` of a folder with a Chart.yaml. They are no YAML before rendering.
pub fn chart_templates(files: &[&SourceFile]) -> BTreeSet<String> {
    files
        .iter()
        .filter_map(|file| CHART_FILES.iter().find_map(|name| file.path.strip_suffix(name)))
        .filter(|folder| folder.is_empty() || folder.ends_with('/'))
        .map(|folder| format!("{folder}templates/"))
        .collect()
}

/// Well-known files of other tools: what is no object in them is skipped without a word.
pub fn is_of_another_tool(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.ends_with(".json")
        || name.starts_with("values")
        || kustomization::is_file(path)
        || CHART_FILES.contains(&name)
        || ["Chart.lock", "mkdocs.yml"].contains(&name)
        || ["docker-compose", "compose", "Taskfile", "buf"].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_yaml_and_json_outside_dot_folders() {
        for path in ["a.yaml", "x/b.yml", "c.json", "./a.yaml", "../a.yaml", "cutlist.lock", "blue/cutlist.lock"] {
            assert!(is_candidate(path), "{path}");
        }
        for path in ["a.txt", "yaml", ".github/workflows/ci.yaml", "x/.hidden.yaml", "a.yaml.swp", "Cargo.lock"] {
            assert!(!is_candidate(path), "{path}");
        }
    }

    #[test]
    fn paths_are_whole_folders_or_files() {
        assert!(covers("pools", "pools/a.yaml") && covers("./pools/", "pools/a.yaml") && covers("a.yaml", "a.yaml"));
        assert!(covers(".", "a.yaml"));
        assert!(!covers("pools", "pools-old/a.yaml") && !covers("pool", "pools/a.yaml"));
    }
}
