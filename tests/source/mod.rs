//! The source tree as the house rules look at it: files, tokens with their lines, and what belongs to unit tests.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Of the project and of the rings that are crates of their own.
pub const MANIFESTS: [&str; 3] = ["Cargo.toml", "src/api/Cargo.toml", "src/core/Cargo.toml"];

/// The folder that holds `Cargo.toml`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Rust file: its path from the root, with `/` on every system, and its text.
pub struct SourceFile {
    pub path: String,
    pub text: String,
}

impl SourceFile {
    pub fn tokens(&self) -> TokenStream {
        self.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// A file of unit tests only, or of what they are built with: `tests.rs`, `testing.rs`, or in a folder of that name.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part.trim_end_matches(".rs"), "tests" | "testing"))
    }
}

/// Every file below a folder of the root whose name ends in `.extension`, in order of path.
pub fn files(folder: &str, extension: &str) -> Vec<SourceFile> {
    let mut paths = Vec::new();
    collect(&root().join(folder), &mut paths);
    paths.sort();
    paths
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let relative = path.strip_prefix(root()).unwrap();
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            SourceFile { path: parts.join("/"), text }
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// The tokens without the items under `#[cfg(test)]`, at every depth.
pub fn without_tests(stream: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut kept = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if is_test_attribute(&tokens[index..]) {
            index = end_of_item(&tokens, index + 2);
            continue;
        }
        kept.push(match &tokens[index] {
            TokenTree::Group(group) => {
                let mut inner = proc_macro2::Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other.clone(),
        });
        index += 1;
    }
    kept.into_iter().collect()
}

/// `#[cfg(test)]`, and not `#[cfg(not(test))]`.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(hash), TokenTree::Group(group), ..] = tokens else { return false };
    hash.as_char() == '#'
        && group.delimiter() == Delimiter::Bracket
        && group.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// Where the item that starts at `index` ends: behind its body, or behind its semicolon.
fn end_of_item(tokens: &[TokenTree], mut index: usize) -> usize {
    // A brace in `use a::{b};` or in `const A: B = B { c: 1 };` is not the end.
    let mut ends_with_semicolon = false;
    while let Some(token) = tokens.get(index) {
        index += 1;
        match token {
            TokenTree::Ident(word) => {
                ends_with_semicolon |= matches!(word.to_string().as_str(), "use" | "const" | "static");
                ends_with_semicolon &= *word != "fn";
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => return index,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !ends_with_semicolon => return index,
            _ => {}
        }
    }
    index
}
