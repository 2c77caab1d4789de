//! Kustomizations that can not be read. What they make of the files that they name is not known, so none of these is judged as if it stood
//! alone. And what tells Flux and Argo CD of definitions, and can not be read either.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::kustomization;
use crate::api::source::SourceFile;
use crate::definitions::document::Parsed;
use crate::definitions::files;
use crate::definitions::flux;
use crate::definitions::kinds::{Class, classify};

/// Files that are kustomizations by their name and can not be read, with the words in them that may be paths.
pub fn of<'a>(sources: &[&'a SourceFile], parsed: &[Parsed]) -> BTreeMap<usize, Vec<&'a str>> {
    let is_unreadable = |source: &SourceFile, parsed: &Parsed| {
        kustomization::is_file(&source.path) && parsed.documents.is_empty() && parsed.lacks_some()
    };
    let files = sources.iter().zip(parsed).enumerate();
    files
        .filter(|(_, (source, parsed))| is_unreadable(source, parsed))
        .map(|(index, (source, _))| (index, words(str::from_utf8(&source.content).unwrap_or_default())))
        .collect()
}

/// Without comments, and without the signs of YAML and JSON.
fn words(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split([' ', '\t', ',', '"', '\'', '[', ']', '{', '}']));
    words.filter(|word| !word.is_empty() && *word != "-" && !word.ends_with(':')).collect()
}

/// Whether a file holds a definition.
pub fn has_definition(parsed: &Parsed) -> bool {
    parsed.documents.iter().any(|document| match classify(&document.value) {
        Class::Read(kind) => kind.is_object(),
        Class::Old(_) => true,
        _ => false,
    })
}

/// Files with something unreadable that names a folder with definitions, as the path of what Flux or Argo CD applies.
pub fn of_delivery(sources: &[&SourceFile], parsed: &[Parsed], definitions: &[&str]) -> BTreeSet<usize> {
    let is_one = |source: &SourceFile, parsed: &Parsed| {
        let text = str::from_utf8(&source.content).unwrap_or_default();
        parsed.has_unread && DELIVERY.iter().any(|group| text.contains(group)) && applies_some(text, definitions)
    };
    let files = sources.iter().zip(parsed).enumerate();
    files.filter(|(_, (source, parsed))| is_one(source, parsed)).map(|(index, _)| index).collect()
}

/// Groups of the kinds that say what is applied.
const DELIVERY: [&str; 2] = [flux::GROUP, "argoproj.io"];

fn applies_some(text: &str, definitions: &[&str]) -> bool {
    let mut paths = text.lines().filter_map(|line| {
        let path = line.trim_start().trim_start_matches("- ").strip_prefix("path:")?.split(" #").next()?;
        Some(path.trim().trim_matches(['"', '\'']))
    });
    paths.any(|path| definitions.iter().any(|definition| files::covers(path, definition)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_applied_is_named_by_its_path() {
        let definitions = ["infra/pools/general.yaml"];
        for (text, applies) in [
            ("spec:\n  path: ./infra/pools # all\n", true),
            ("spec:\n  sources:\n  - path: 'infra'\n", true),
            ("spec:\n  path: apps\n", false),
            ("- op: replace\n  path: /spec/weight\n", false),
            ("spec: {}\n", false),
        ] {
            assert_eq!(applies_some(text, &definitions), applies, "{text}");
        }
    }

    #[test]
    fn words_of_broken_text_may_be_paths() {
        let text = "# - not.yaml\nresources:\n  - ../base\n - \"pool.yaml\"\npatches: [{path: p.yaml, target: {kind: NodePool\n";
        assert_eq!(words(text), ["../base", "pool.yaml", "p.yaml", "NodePool"]);
    }
}
