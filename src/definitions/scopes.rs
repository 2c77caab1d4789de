//! Which objects are held against each other.
//!
//! Without kustomizations: all. What one kustomization builds with pools and classes is complete by itself, and two of them
//! may define the same: each is judged alone. The rest is judged together, with everything that is defined elsewhere in sight.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::{Finding, Place};
use super::kinds::Kind;
use super::revision::Object;
use super::rules::kustomize::SEVERAL;

/// Objects that are judged together.
#[derive(Debug, Default)]
pub struct Scope {
    pub objects: Vec<Object>,
    visitors: Visitors,
}

/// Files and names of objects that are judged elsewhere, and are here to be found.
#[derive(Debug, Default)]
pub struct Visitors(BTreeSet<(usize, Option<String>)>);

impl Visitors {
    /// Whether the finding is about something that is judged here.
    pub fn judges(&self, finding: &Finding) -> bool {
        !self.0.contains(&(finding.file, finding.object.clone()))
    }
}

impl Scope {
    pub fn into_parts(self) -> (Vec<Object>, Visitors) {
        (self.objects, self.visitors)
    }

    fn visit(&mut self, object: &Object) {
        self.visitors.0.insert((object.document.file, object.document.name()));
        self.objects.push(object.clone());
    }
}

type Key = (Kind, String, String);

/// `None` for what has no name, or stands for itself.
fn key(object: &Object) -> Option<Key> {
    let name = object.name().filter(|_| object.kind.is_object() && !object.staged)?;
    Some((object.kind, object.namespace().to_owned(), name.to_owned()))
}

/// To judge every file: the scopes, the rest first.
pub fn apart(objects: Vec<Object>) -> Vec<Scope> {
    let mut kinds: BTreeMap<usize, BTreeSet<Kind>> = BTreeMap::new();
    for object in &objects {
        if let Some(build) = object.build {
            kinds.entry(build).or_default().insert(object.kind);
        }
    }
    let complete =
        |kinds: &BTreeSet<Kind>| [Kind::NodePool, Kind::EC2NodeClass].iter().all(|kind| kinds.contains(kind));
    let complete: BTreeSet<usize> =
        kinds.iter().filter(|(_, kinds)| complete(kinds)).map(|(build, _)| *build).collect();
    let (mut rest, mut scopes) = (Scope::default(), BTreeMap::<usize, Scope>::new());
    let mut known: BTreeMap<Key, Option<usize>> = BTreeMap::new();
    for object in objects {
        match object.build.filter(|build| complete.contains(build)) {
            Some(build) => scopes.entry(build).or_default().objects.push(object),
            None => {
                let first = key(&object).map(|key| *known.entry(key).or_insert(object.build));
                if first.is_none_or(|first| first == object.build) {
                    rest.objects.push(object);
                }
            }
        }
    }
    for scope in scopes.values_mut() {
        rest.objects.iter().filter(|object| !object.kind.is_object()).for_each(|object| scope.visit(object));
        for object in &scope.objects {
            if let Some(key) = key(object).filter(|key| !known.contains_key(key)) {
                known.insert(key, object.build);
                rest.visit(object);
            }
        }
    }
    std::iter::once(rest).chain(scopes.into_values()).collect()
}

/// To use them together: one scope, and what can not stand in one. `name` gives the folder of a kustomization.
pub fn together<'n>(objects: Vec<Object>, name: impl Fn(usize) -> &'n str) -> (Scope, Vec<Finding>) {
    let mut known: BTreeMap<Key, Option<usize>> = BTreeMap::new();
    let mut findings = Vec::new();
    let mut scope = Scope::default();
    for object in objects {
        let first = key(&object).map(|key| *known.entry(key).or_insert(object.build));
        let Some(first) = first.filter(|first| *first != object.build) else {
            scope.objects.push(object);
            continue;
        };
        let place = |build: Option<usize>| {
            build.map_or("a file outside of kustomizations".to_owned(), |build| format!("`{}`", name(build)))
        };
        let message = format!(
            "{} `{}` is defined by {} and by {}",
            object.kind.name(),
            object.name().unwrap_or_default(),
            place(first),
            place(object.build)
        );
        let finding = Finding::at(&SEVERAL, &object.document, "/metadata/name", Place::Value, message);
        findings.push(finding.hint("name the folder of the kustomization that is meant"));
    }
    (scope, findings)
}
