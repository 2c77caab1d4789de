//! What a file uses: every path of it, resolved through its imports.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source::SourceFile;

/// A path that was found, as it is written and as it resolves.
pub struct Use {
    pub line: usize,
    pub written: String,
    pub resolved: String,
    pub glob: bool,
    /// The name under which a `pub use` hands it on.
    pub handed_on_as: Option<String>,
}

/// Names of all dependencies as Rust writes them.
pub fn dependencies() -> BTreeSet<String> {
    let mut names = BTreeSet::from(["cutlist".to_owned()]);
    for manifest in super::source::MANIFESTS {
        let manifest = std::fs::read_to_string(super::source::root().join(manifest)).unwrap();
        let mut inside = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                inside = line.contains("dependencies]");
            } else if let Some((name, _)) = line.split_once(" = ").filter(|_| inside && !line.starts_with('#')) {
                names.insert(name.trim().trim_end_matches(".workspace").replace('-', "_"));
            }
        }
    }
    names
}

/// A path before it is resolved.
struct Path {
    line: usize,
    module: Vec<String>,
    segments: Vec<String>,
    glob: bool,
    handed_on_as: Option<String>,
}

/// What a name stands for, and the module it was imported in.
struct Import {
    segments: Vec<String>,
    module: Vec<String>,
}

#[derive(Default)]
struct Paths {
    /// Name in this file to what it was imported as. A name can be imported twice, in two functions.
    imports: BTreeMap<String, Vec<Import>>,
    found: Vec<Path>,
}

pub fn uses(file: &SourceFile, crates: &BTreeSet<String>) -> Vec<Use> {
    let below = file.path.strip_prefix("src/").unwrap_or(&file.path).trim_end_matches(".rs");
    let mut module = vec!["crate".to_owned()];
    module.extend(below.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).map(str::to_owned));
    let mut paths = Paths::default();
    paths.walk(super::source::without_tests(file.tokens()), &module);
    let mut uses = Vec::new();
    for path in &paths.found {
        for resolved in paths.resolve(&path.segments, &path.module, crates, 0) {
            let written = path.segments.join("::") + if path.glob { "::*" } else { "" };
            let handed_on_as = path.handed_on_as.clone();
            uses.push(Use { line: path.line, written, resolved: resolved.join("::"), glob: path.glob, handed_on_as });
        }
    }
    uses
}

impl Paths {
    fn walk(&mut self, stream: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut index = 0;
        while index < tokens.len() {
            match &tokens[index] {
                TokenTree::Ident(word) if *word == "use" && !is_mark(tokens.get(index + 1), '<') => {
                    let end = (index..tokens.len()).find(|at| is_mark(tokens.get(*at), ';')).unwrap_or(tokens.len());
                    let first = self.found.len();
                    self.import(&tokens[index + 1..end], module, &[]);
                    if !is_public(&tokens[..index]) {
                        self.found[first..].iter_mut().for_each(|path| path.handed_on_as = None);
                    }
                    index = end;
                }
                TokenTree::Ident(word) if *word == "mod" => {
                    if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                        (tokens.get(index + 1), tokens.get(index + 2))
                    {
                        let inner: Vec<String> = module.iter().cloned().chain([name.to_string()]).collect();
                        self.walk(body.stream(), &inner);
                        index += 2;
                    }
                }
                TokenTree::Ident(_) => index = self.path(&tokens, index, module),
                TokenTree::Group(group) => self.walk(group.stream(), module),
                _ => {}
            }
            index += 1;
        }
    }

    /// A path in code. Gives the index of its last token.
    fn path(&mut self, tokens: &[TokenTree], start: usize, module: &[String]) -> usize {
        let line = tokens[start].span().start().line;
        let mut segments = vec![tokens[start].to_string()];
        let mut index = start;
        while is_separator(tokens, index + 1) {
            let Some(TokenTree::Ident(word)) = tokens.get(index + 3) else { break };
            segments.push(word.to_string());
            index += 3;
        }
        // Behind one dot is a field or a method; behind two, as in `0..u64::MAX`, a path may begin.
        let is_member = is_mark_before(tokens, start, 1, '.') && !is_mark_before(tokens, start, 2, '.');
        if segments.len() > 1 && !is_member {
            self.found.push(Path { line, module: module.to_vec(), segments, glob: false, handed_on_as: None });
        }
        index
    }

    /// One level of a `use` tree.
    fn import(&mut self, tokens: &[TokenTree], module: &[String], before: &[String]) {
        for branch in tokens.split(|token| is_mark(Some(token), ',')) {
            let mut segments = before.to_vec();
            let mut alias = None;
            let mut ends_here = true;
            let mut glob = false;
            let mut words = branch.iter().peekable();
            let Some(line) = branch.first().map(|token| token.span().start().line) else { continue };
            while let Some(token) = words.next() {
                match token {
                    TokenTree::Ident(word) if *word == "as" => alias = words.next().map(ToString::to_string),
                    // `use a::{self}` is `use a`.
                    TokenTree::Ident(word) if *word == "self" && !segments.is_empty() => {}
                    TokenTree::Ident(word) => segments.push(word.to_string()),
                    TokenTree::Punct(mark) if mark.as_char() == '*' => glob = true,
                    TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.import(&inner, module, &segments);
                        ends_here = false;
                    }
                    _ => {}
                }
            }
            if !ends_here {
                continue;
            }
            let name = alias.or_else(|| segments.last().cloned()).filter(|_| !glob);
            if let Some(name) = name.clone() {
                let import = Import { segments: segments.clone(), module: module.to_vec() };
                self.imports.entry(name).or_default().push(import);
            }
            self.found.push(Path { line, module: module.to_vec(), segments, glob, handed_on_as: name });
        }
    }

    /// The absolute paths that a written path can mean.
    fn resolve(
        &self,
        segments: &[String],
        module: &[String],
        crates: &BTreeSet<String>,
        depth: usize,
    ) -> Vec<Vec<String>> {
        let Some((first, rest)) = segments.split_first() else { return Vec::new() };
        let join = |start: &[String], rest: &[String]| vec![[start, rest].concat()];
        match first.as_str() {
            "crate" => return join(crate_root(module), rest),
            "cutlist_api" | "cutlist_core" => {
                return join(&["crate".to_owned(), first.replace("cutlist_", "")], rest);
            }
            "self" => return join(module, rest),
            "super" => {
                let parent = &module[..module.len().saturating_sub(1)];
                return match rest.first().map(String::as_str) {
                    Some("super") => self.resolve(rest, parent, crates, depth),
                    _ => join(parent, rest),
                };
            }
            _ => {}
        }
        // An import of a name through itself (`use serde::{self}`) must not go round for ever.
        const DEPTH_MAX: usize = 4;
        if let Some(imports) = self.imports.get(first).filter(|_| depth < DEPTH_MAX) {
            let other = imports.iter().filter(|import| import.segments.first() != Some(first));
            let resolved: Vec<_> = other
                .flat_map(|import| self.resolve(&[&import.segments, rest].concat(), &import.module, crates, depth + 1))
                .collect();
            if !resolved.is_empty() {
                return resolved;
            }
        }
        if matches!(first.as_str(), "std" | "core" | "alloc") {
            return join(&["std".to_owned()], rest);
        }
        if crates.contains(first) {
            return join(segments, &[]);
        }
        // A type, a macro or a module of this file.
        join(module, segments)
    }
}

/// What `crate` means in a module. The inner rings are crates of their own, which the others know as `crate::api` and `crate::core`.
fn crate_root(module: &[String]) -> &[String] {
    let is_inner = module.get(1).is_some_and(|ring| matches!(ring.as_str(), "api" | "core"));
    &module[..if is_inner { 2 } else { 1 }]
}

/// Whether the tokens before an item end with `pub`, or with `pub(super)` and the like.
fn is_public(before: &[TokenTree]) -> bool {
    let word = match before {
        [.., word, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => word,
        [.., word] => word,
        [] => return false,
    };
    matches!(word, TokenTree::Ident(word) if *word == "pub")
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn is_mark_before(tokens: &[TokenTree], index: usize, distance: usize, mark: char) -> bool {
    index.checked_sub(distance).is_some_and(|at| is_mark(tokens.get(at), mark))
}

fn is_separator(tokens: &[TokenTree], index: usize) -> bool {
    is_mark(tokens.get(index), ':') && is_mark(tokens.get(index + 1), ':')
}
