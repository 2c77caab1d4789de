//! The names that definitions call each other by: where each is given, and where it is used.
//!
//! A name is used in fields that refer to an object, in selectors, affinities and requirements by the labels that Karpenter gives each node
//! (`karpenter.sh/nodepool`, `karpenter.k8s.aws/ec2nodeclass`), and where a kustomization says what a patch is for. What is no more than a
//! part of a text is not a name here.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::api::kustomization::{self, Purpose, folder, join};
use crate::api::source::SourceFile;
use crate::api::{image_lock, keys};
use crate::definitions::document::{self, Document, spans};
use crate::definitions::findings::FindingPlace;
use crate::definitions::kinds::{Class, Kind, classify};
use crate::definitions::limits;
use crate::definitions::rules::kinds::is_subdomain;

/// A place at which an object is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub file: String,
    /// Of the name, without quotes.
    pub start: usize,
    pub end: usize,
    pub is_quoted: bool,
    /// It is given there, and not only used.
    pub is_given: bool,
    /// What is named.
    pub kind: Kind,
    pub name: String,
}

impl Occurrence {
    /// What is to be written there for another name.
    pub fn renamed(&self, name: &str) -> String {
        let is_text = || matches!(document::read_value(name), Ok(Value::String(text)) if text == name);
        let is_clear = self.is_quoted || (is_text() && document::disagreement(name).is_none());
        if is_clear { name.to_owned() } else { format!("\"{name}\"") }
    }
}

/// An object of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub kind: String,
    pub start: usize,
    pub end: usize,
    /// Of the name, or of what is there in its place.
    pub name_start: usize,
    pub name_end: usize,
}

/// Whether an object can be called so.
pub fn is_name(name: &str) -> bool {
    is_subdomain(name)
}

/// What is named at a place of a file.
pub fn at(files: &[SourceFile], path: &str, byte: usize) -> Option<Occurrence> {
    let file = files.iter().find(|file| file.path == path)?;
    occurrences(file).into_iter().find(|it| (it.start..=it.end).contains(&byte))
}

/// Everywhere that the object is named, in the order of the files. Where several folders have an object of the name, as those of clusters do,
/// each use belongs to the one that lies nearest, and what belongs together is one object.
pub fn everywhere(files: &[SourceFile], wanted: &Occurrence) -> Vec<Occurrence> {
    let patches = patches(files);
    let mentions = |file: &&SourceFile| text_of(file).is_some_and(|text| text.contains(&wanted.name));
    let mut found: Vec<Occurrence> = files.iter().filter(mentions).flat_map(occurrences).collect();
    found.retain(|it| it.kind == wanted.kind && it.name == wanted.name);
    found.iter_mut().filter(|it| patches.contains(&it.file)).for_each(|it| it.is_given = false);
    let givers: BTreeSet<String> = found.iter().filter(|it| it.is_given).map(|it| it.file.clone()).collect();
    let of = |file: &str| nearest(&givers, file);
    let mut own = of(&wanted.file);
    loop {
        let before = own.len();
        for occurrence in &found {
            let givers = of(&occurrence.file);
            if !givers.is_disjoint(&own) {
                own.extend(givers);
            }
        }
        if own.len() == before {
            break;
        }
    }
    found.retain(|it| givers.is_empty() || !of(&it.file).is_disjoint(&own));
    found
}

/// The objects of a text, in their order.
pub fn symbols(text: &str) -> Vec<Symbol> {
    let parsed = document::parse(0, &Arc::from(text));
    let objects = parsed.documents.iter().filter_map(|document| {
        let kind = document.str("/kind").filter(|kind| !kind.trim().is_empty())?;
        let name = document.str("/metadata/name").filter(|name| !name.trim().is_empty());
        let place = document.place(if name.is_some() { "/metadata/name" } else { "/kind" }, FindingPlace::Value);
        let start = document.place("", FindingPlace::Value).start_byte.min(place.start_byte);
        let (name, kind) = (name.unwrap_or(kind).to_owned(), kind.to_owned());
        Some(Symbol { name, kind, start, end: text.len(), name_start: place.start_byte, name_end: place.end_byte })
    });
    let mut symbols: Vec<Symbol> = objects.collect();
    symbols.sort_by_key(|symbol| symbol.start);
    let starts: Vec<usize> = symbols.iter().skip(1).map(|symbol| symbol.start).chain([text.len()]).collect();
    for (symbol, next) in symbols.iter_mut().zip(starts) {
        let body = text.get(symbol.start..next).unwrap_or_default();
        let body = body.split_once("\n---").map_or(body, |(own, _)| own);
        symbol.end = (symbol.start + body.trim_end().len()).max(symbol.name_end);
    }
    symbols
}

fn text_of(file: &SourceFile) -> Option<&str> {
    let is_read = file.has_content() && file.content.len() <= limits::FILE_BYTES;
    str::from_utf8(&file.content).ok().filter(|_| is_read)
}

/// Of the files that give a name those that lie nearest to another one.
fn nearest(givers: &BTreeSet<String>, file: &str) -> BTreeSet<String> {
    let shared = |giver: &str| {
        let (one, other) = (folder(file).split('/'), folder(giver).split('/'));
        (giver == file, one.zip(other).take_while(|(one, other)| one == other && !one.is_empty()).count())
    };
    let most = givers.iter().map(|giver| shared(giver)).max();
    givers.iter().filter(|giver| Some(shared(giver)) == most).cloned().collect()
}

/// Files of patches: an object in one of them is defined elsewhere.
fn patches(files: &[SourceFile]) -> BTreeSet<String> {
    let kustomizations = files.iter().filter(|file| kustomization::is_file(&file.path));
    let named = kustomizations.flat_map(|file| {
        let references = documents(file).first().map(|it| kustomization::references(&it.value)).unwrap_or_default();
        let patches = references.into_iter().filter(|it| it.purpose == Purpose::Patch);
        patches.filter_map(|it| join(folder(&file.path), &it.path)).collect::<Vec<String>>()
    });
    named.collect()
}

fn documents(file: &SourceFile) -> Vec<Document> {
    text_of(file).map(|text| document::parse(0, &Arc::from(text)).documents).unwrap_or_default()
}

/// Every name in a file that stands there as it is.
fn occurrences(file: &SourceFile) -> Vec<Occurrence> {
    let mut found = Vec::new();
    for document in documents(file) {
        for (kind, pointer, is_given) in pointers(&document, &file.path) {
            found.extend(occurrence(&document, &file.path, (kind, &pointer, is_given)));
        }
    }
    found.sort_by_key(|it| it.start);
    found.dedup();
    found
}

/// `None` where the name stands elsewhere, as that of an alias does, or is written otherwise.
fn occurrence(document: &Document, file: &str, (kind, pointer, is_given): (Kind, &str, bool)) -> Option<Occurrence> {
    let name = document.str(pointer)?;
    document.spans.get(&format!("{}{pointer}", document.root))?;
    let span = document.place(pointer, FindingPlace::Value);
    let written = document.text.get(span.start_byte..span.end_byte)?;
    let bare = ['"', '\''].iter().find_map(|quote| written.strip_prefix(*quote)?.strip_suffix(*quote));
    let (is_quoted, offset) = (bare.is_some(), usize::from(bare.is_some()));
    let is_it = !name.is_empty() && bare.unwrap_or(written) == name;
    is_it.then(|| Occurrence {
        file: file.to_owned(),
        start: span.start_byte + offset,
        end: span.end_byte - offset,
        is_quoted,
        is_given,
        kind,
        name: name.to_owned(),
    })
}

/// Where a document may name something: what, where, and whether it is given there.
fn pointers(document: &Document, path: &str) -> Vec<(Kind, String, bool)> {
    let mut found = Vec::new();
    if let Class::Read(kind) = classify(&document.value) {
        if kind.is_object() {
            found.push((kind, "/metadata/name".to_owned(), true));
        }
        let reference = match kind {
            Kind::NodePool => {
                let class = "/spec/template/spec/nodeClassRef";
                let of = document.str(&format!("{class}/kind")).unwrap_or(Kind::EC2NodeClass.name());
                (of == Kind::EC2NodeClass.name()).then(|| (Kind::EC2NodeClass, format!("{class}/name")))
            }
            Kind::CapacityBuffer => Some((Kind::PodTemplate, "/spec/podTemplateRef/name".to_owned())),
            _ => None,
        };
        found.extend(reference.map(|(kind, pointer)| (kind, pointer, false)));
        if kind == Kind::DisruptionBudget {
            let names = document.items("/spec/nodePoolSelector/names");
            found.extend(names.map(|(pointer, _)| (Kind::NodePool, pointer, false)));
        }
    }
    if path.rsplit('/').next() == Some(image_lock::FILE_NAME) {
        let classes = document.items("/spec/nodeClasses");
        found.extend(classes.map(|(pointer, _)| (Kind::EC2NodeClass, format!("{pointer}/name"), false)));
    }
    if kustomization::is_file(path) {
        found.extend(of_kustomization(document));
    }
    if [keys::NODE_POOL, keys::EC2_NODE_CLASS].iter().any(|label| document.text.contains(label)) {
        labels(&document.value, "", &mut found);
    }
    found
}

/// What patches and replacements are for.
fn of_kustomization(document: &Document) -> Vec<(Kind, String, bool)> {
    let mut selectors: Vec<String> = Vec::new();
    for field in ["/patches", "/patchesJson6902"] {
        selectors.extend(document.items(field).map(|(pointer, _)| format!("{pointer}/target")));
    }
    for (pointer, _) in document.items("/replacements") {
        selectors.push(format!("{pointer}/source"));
        selectors.extend(document.items(&format!("{pointer}/targets")).map(|(target, _)| format!("{target}/select")));
    }
    let named = selectors.into_iter().filter_map(|selector| {
        let kind = document.str(&format!("{selector}/kind"))?;
        let kind = Kind::ALL.into_iter().find(|it| it.is_object() && it.name() == kind)?;
        Some((kind, format!("{selector}/name"), false))
    });
    named.collect()
}

/// The kind that a label of nodes names one of.
fn kind_of(label: &str) -> Option<Kind> {
    match label {
        keys::NODE_POOL => Some(Kind::NodePool),
        keys::EC2_NODE_CLASS => Some(Kind::EC2NodeClass),
        _ => None,
    }
}

/// Labels with their values, and requirements that list some.
fn labels(value: &Value, pointer: &str, found: &mut Vec<(Kind, String, bool)>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let inner = spans::join(pointer, key);
                found.extend(kind_of(key).map(|kind| (kind, inner.clone(), false)));
                labels(member, &inner, found);
            }
            let kind = members.get("key").and_then(Value::as_str).and_then(kind_of);
            let values = members.get("values").and_then(Value::as_array).map_or(0, Vec::len);
            if let Some(kind) = kind {
                found.extend((0..values).map(|index| (kind, format!("{pointer}/values/{index}"), false)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                labels(item, &format!("{pointer}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, class: &str) -> String {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: {name} }}\nspec:\n  template:\n    spec:\n      \
             nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: {class} }}\n"
        )
    }

    fn class(name: &str) -> String {
        format!("apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata:\n  name: \"{name}\"\n")
    }

    fn lines_before(text: &str, byte: usize) -> usize {
        text.get(..byte).unwrap().matches('\n').count()
    }

    /// `a.yaml:3 given` for everything that is named where `at` first stands in a file.
    fn named(files: &[(&str, String)], path: &str, at_text: &str) -> Vec<String> {
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, text.as_str())).collect();
        let text = |path: &str| text_of(files.iter().find(|file| file.path == path).unwrap()).unwrap();
        let Some(here) = at(&files, path, text(path).find(at_text).unwrap()) else { return Vec::new() };
        let shown = |it: Occurrence| {
            assert_eq!(text(&it.file).get(it.start..it.end), Some(it.name.as_str()));
            let line = lines_before(text(&it.file), it.start) + 1;
            format!("{}:{line}{}", it.file, if it.is_given { " given" } else { "" })
        };
        everywhere(&files, &here).into_iter().map(shown).collect()
    }

    #[test]
    fn a_class_is_named_by_pools_locks_and_patches() {
        let lock = "apiVersion: cutlist.dev/v1alpha1\nkind: ImageLock\nspec:\n  nodeClasses:\n    - name: std\n";
        let kustomization = "resources: [class.yaml, pool.yaml]\npatches:\n  - path: patch.yaml\n  - target: { kind: EC2NodeClass, name: std }\n    \
                             patch: '[]'\n";
        let files = [
            ("class.yaml", class("std")),
            ("cutlist.lock", lock.to_owned()),
            ("kustomization.yaml", kustomization.to_owned()),
            ("patch.yaml", class("std")),
            ("pool.yaml", format!("{}---\n{}", pool("std", "std"), pool("other", "stdx"))),
        ];
        let expected = ["class.yaml:4 given", "cutlist.lock:5", "kustomization.yaml:4", "patch.yaml:4", "pool.yaml:7"];
        assert_eq!(named(&files, "class.yaml", "std"), expected);
        assert_eq!(named(&files, "pool.yaml", "std }\n---"), expected);
        assert_eq!(
            named(&files, "pool.yaml", "std"),
            ["pool.yaml:3 given"],
            "a pool of the same name is another thing"
        );
        assert!(named(&files, "class.yaml", "kind").is_empty());
    }

    #[test]
    fn a_pool_is_named_by_budgets_and_by_labels() {
        let budget = "apiVersion: cutlist.dev/v1alpha1\nkind: DisruptionBudget\nmetadata: { name: night }\nspec:\n  \
                      nodePoolSelector: { names: [general] }\n  nodes: \"0\"\n";
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: { name: web }\nspec:\n  nodeSelector:\n    karpenter.sh/nodepool: 'general'\n  \
                   affinity: { a: [{ key: karpenter.sh/nodepool, operator: NotIn, values: [spot, general] }] }\n  other: general\n";
        let files =
            [("budget.yaml", budget.to_owned()), ("pod.yaml", pod.to_owned()), ("pool.yaml", pool("general", "std"))];
        let expected = ["budget.yaml:5", "pod.yaml:6", "pod.yaml:7", "pool.yaml:3 given"];
        assert_eq!(named(&files, "pool.yaml", "general"), expected);
        assert!(named(&files, "pod.yaml", "web").is_empty());
    }

    #[test]
    fn folders_of_clusters_have_objects_of_their_own() {
        let files = [
            ("blue/class.yaml", class("std")),
            ("blue/pools/a.yaml", pool("a", "std")),
            ("green/class.yaml", class("std")),
            ("green/a.yaml", pool("a", "std")),
        ];
        let blue = ["blue/class.yaml:4 given", "blue/pools/a.yaml:7"];
        assert_eq!(named(&files, "blue/pools/a.yaml", "std"), blue);
        assert_eq!(named(&files, "green/class.yaml", "std"), ["green/class.yaml:4 given", "green/a.yaml:7"]);
        // One that is for both ties them together.
        let shared = [files.as_slice(), &[("shared/b.yaml", pool("b", "std"))]].concat();
        assert_eq!(named(&shared, "blue/class.yaml", "std").len(), 5);
    }

    #[test]
    fn a_name_stays_text() {
        let occurrence = |is_quoted| Occurrence {
            file: String::new(),
            start: 0,
            end: 0,
            is_quoted,
            is_given: true,
            kind: Kind::NodePool,
            name: "a".to_owned(),
        };
        for (name, plain) in
            [("b", "b"), ("012", "\"012\""), ("1.5", "\"1.5\""), ("true", "\"true\""), ("on", "\"on\"")]
        {
            assert_eq!(
                (occurrence(false).renamed(name).as_str(), occurrence(true).renamed(name).as_str()),
                (plain, name)
            );
        }
    }

    #[test]
    fn symbols_are_objects_with_their_names() {
        let text = format!(
            "# first\n{}\n---\n# second\n{}---\na: 1\n---\nkind: List\nitems: []\n",
            pool("a", "std"),
            class("b")
        );
        let found: Vec<_> = symbols(&text)
            .into_iter()
            .map(|it| {
                assert!(
                    it.start <= it.name_start && it.name_end <= it.end && !text.get(..it.end).unwrap().ends_with('\n')
                );
                (it.kind, it.name, lines_before(&text, it.start), lines_before(&text, it.end))
            })
            .collect();
        let symbol = |kind: &str, name: &str, start, end| (kind.to_owned(), name.to_owned(), start, end);
        assert_eq!(found, [symbol("NodePool", "a", 1, 7), symbol("EC2NodeClass", "b", 11, 14)]);
    }
}
