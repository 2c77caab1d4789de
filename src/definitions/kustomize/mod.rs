//! Kustomizations: built here, so that every value keeps the file and line it was written in.
//!
//! Fields and their order are those of `kustomize build`. What is not carried out is named in a finding.
//!
//! | what | where |
//! |---|---|
//! | which files are kustomizations, and what the others are to them | `layout.rs` |
//! | one kustomization: its resources, and what is done with them | `build.rs` |
//! | those that can not be read | `unreadable.rs` |
//! | what may stand in it | `form.rs` |
//! | what is taken from where nothing is read | `elsewhere.rs` |
//! | which objects a patch is for | `select.rs` |
//! | patches | `patch.rs`: where they are; `merge.rs`: strategic merge; `operations.rs`: JSON 6902 |
//! | names, labels, annotations, namespaces, replicas | `transform.rs`; `follow.rs`: names in other objects |
//! | values copied from one object to others | `replace.rs`; `generate.rs`: those of generators |
//! | what is done after all of that, by others | `together.rs` |
//! | how large an object gets | `weight.rs` |

mod build;
mod builder;
mod elsewhere;
mod follow;
mod form;
mod generate;
mod layout;
mod merge;
mod operations;
mod patch;
mod replace;
mod select;
mod together;
mod transform;
mod unreadable;
mod weight;

pub use build::{Build, build, empty};
pub use elsewhere::{Elsewhere, elsewhere};
pub use layout::{Layout, Role};
pub use together::{Plain, Together};
pub use transform::is_replicated;

use super::document::{Disagreement, Document, Origin, spans};

/// An object on its way through a kustomization.
#[derive(Clone, Debug)]
struct Item {
    document: Document,
    history: History,
    /// Of what a generator makes: what is known of it. It is no definition, and may be what a replacement copies from.
    generated: Option<Known>,
    /// Which of several lists it is of, where they are changed together.
    list: usize,
}

/// By what kustomize knew an object before, and knows it now.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The first is that of its file.
    earlier: Vec<Identity>,
    /// That of a kustomization, where the object has none: kustomize gives one to each object whose kind it does not know, and the API server
    /// drops it from what lives in none.
    namespace: Option<String>,
    /// What its name was given in front and behind, innermost first.
    prefixes: Vec<String>,
    suffixes: Vec<String>,
}

impl History {
    /// Whether names were given the same from the outside, as far as both were given any. Nothing fits everything only where it `may_be_empty`.
    fn is_of_one_build(&self, other: &Self, may_be_empty: bool) -> bool {
        let fit = |one: &[String], other: &[String]| match one.is_empty() || other.is_empty() {
            true => may_be_empty || one.len() == other.len(),
            false => one.ends_with(other) || other.ends_with(one),
        };
        fit(&self.prefixes, &other.prefixes) && fit(&self.suffixes, &other.suffixes)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    name: String,
    namespace: String,
}

/// To kustomize, of what names none.
const DEFAULT_NAMESPACE: &str = "default";

/// How much is known of what a generator makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    All,
    /// Some of it comes from files that are not read.
    Part,
}

impl Item {
    fn new(document: Document) -> Self {
        Self { document, history: History::default(), generated: None, list: 0 }
    }

    fn text(&self, pointer: &str) -> &str {
        self.document.str(pointer).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.text("/kind")
    }

    fn name(&self) -> &str {
        self.text("/metadata/name")
    }

    fn group_and_version(&self) -> (&str, &str) {
        let text = self.text("/apiVersion");
        text.split_once('/').unwrap_or(("", text))
    }

    fn namespace(&self) -> &str {
        match self.history.namespace.as_deref().unwrap_or_else(|| self.text("/metadata/namespace")) {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        }
    }

    /// Names with namespaces: those before, the first of them that of its file, and those now.
    fn identities(&self) -> impl Iterator<Item = (&str, &str)> {
        let earlier = self.history.earlier.iter().map(|it| (it.name.as_str(), it.namespace.as_str()));
        earlier.chain(std::iter::once((self.name(), self.namespace())))
    }

    /// The name now, and those before.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.identities().map(|(name, _)| name)
    }

    fn identity(&self) -> Identity {
        Identity { name: self.name().to_owned(), namespace: self.namespace().to_owned() }
    }

    /// Keeps what the object was known by before it was changed.
    fn remember(&mut self, before: Identity) {
        if before != self.identity() && !self.history.earlier.contains(&before) {
            self.history.earlier.push(before);
        }
    }

    /// What is written at `pointer` from now on stands at `origin`.
    fn written(&mut self, pointer: &str, origin: Origin) {
        let is_elsewhere = |at: &str| spans::below(pointer, at).is_none();
        self.document.parts.retain(|(at, _)| is_elsewhere(at));
        self.document.ambiguous.retain(|(at, _)| is_elsewhere(at));
        self.document.parts.push((pointer.to_owned(), origin));
    }

    /// The same where it is written as `at` of the patch: also what programs read differently in it, of which `is_open` says what still is
    /// read by others.
    fn take_from(&mut self, pointer: &str, (patch, at): (&Document, &str), is_open: fn(Disagreement) -> bool) {
        self.written(pointer, patch.origin(at));
        self.document
            .ambiguous
            .extend(ambiguous_below(&patch.ambiguous, at, pointer).filter(|(_, what)| is_open(*what)));
    }
}

/// What is ambiguous at `from` and below it, at the place where it stands now.
fn ambiguous_below<'a>(
    all: &'a [(String, Disagreement)],
    from: &'a str,
    now: &'a str,
) -> impl Iterator<Item = (String, Disagreement)> + 'a {
    all.iter().filter_map(move |(pointer, what)| {
        let rest = spans::below(from, pointer)?;
        Some((format!("{now}{rest}"), *what))
    })
}

/// A patch as a document of its kind: without directives, and without what it removes.
pub fn without_directives(patch: &Document) -> Document {
    Document { value: merge::without_directives(&patch.value).into(), ..patch.clone() }
}
