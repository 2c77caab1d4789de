//! Which objects are held against each other.
//!
//! What one kustomization builds is applied by itself, and so, mostly, are folders that define the same: each is judged
//! alone. A scope that is complete, with pools and classes, sees nothing of the others. Any other scope sees them, to
//! find objects in them and not to judge them.

use std::collections::{BTreeMap, BTreeSet};

use super::files::nearest;
use super::findings::{Finding, FindingPlace};
use super::kinds::Kind;
use super::revision::Object;
use super::rules::kustomize::{SEVERAL, SEVERAL_FOLDERS};
use crate::api::kustomization::folder;

/// Objects that are judged together.
#[derive(Debug, Default)]
pub struct LintScope {
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

impl LintScope {
    pub fn into_parts(self) -> (Vec<Object>, Visitors) {
        (self.objects, self.visitors)
    }

    fn visit(&mut self, object: &Object) {
        let patches = object.document.parts.iter().map(|(_, origin)| origin.file);
        let name = object.document.name();
        self.visitors.0.extend(patches.chain([object.document.file]).map(|file| (file, name.clone())));
        self.objects.push(object.clone());
    }
}

type Key = (Kind, String, String);

/// Gives `None` for an object that has no name, or stands for itself.
fn key(object: &Object) -> Option<Key> {
    let name = object.name().filter(|_| object.kind.is_object() && !object.staged)?;
    Some((object.kind, object.namespace().to_owned(), name.to_owned()))
}

/// What is judged alone: the rest, what a kustomization builds, or what lies in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScopeKey {
    Rest,
    Build(usize),
    Folder(String),
}

/// How the user writes the path of a folder. `all` has the paths of files, as the user writes them, by their paths here.
pub fn typed(all: Option<&BTreeMap<String, String>>, folder: &str) -> String {
    let below = format!("{folder}/");
    let file = all.and_then(|all| all.range(below.clone()..).next()).filter(|(path, _)| path.starts_with(&below));
    let typed = file.and_then(|(path, typed)| typed.strip_suffix(path.get(folder.len()..)?));
    typed.unwrap_or(folder).to_owned()
}

/// The scopes to judge every file in, the rest first. `path` gives that of a file, and `typed` that of a folder as the user writes it.
pub fn apart<'p>(
    objects: Vec<Object>,
    path: impl Fn(usize) -> &'p str,
    typed: impl Fn(&str) -> String,
) -> (Vec<LintScope>, Vec<Finding>) {
    let (folders, findings) = folders(&objects, &path, &typed);
    let mut scopes = BTreeMap::from([(ScopeKey::Rest, LintScope::default())]);
    for object in objects {
        let path = path(object.document.file);
        let part = match object.build {
            Some(build) => ScopeKey::Build(build),
            None if !object.kind.is_object() || object.staged => ScopeKey::Rest,
            None => nearest(&folders, path).map_or(ScopeKey::Rest, |(it, ())| ScopeKey::Folder(it.to_owned())),
        };
        scopes.entry(part).or_default().objects.push(object);
    }
    // Mostly there is one scope, and nothing else to see.
    if scopes.len() == 1 {
        return (scopes.into_values().collect(), findings);
    }
    let with_key = |object: &Object| (key(object), object.clone());
    let own: BTreeMap<ScopeKey, Vec<(Option<Key>, Object)>> =
        scopes.iter().map(|(part, scope)| (part.clone(), scope.objects.iter().map(with_key).collect())).collect();
    for (part, scope) in &mut scopes {
        let has = |kind: Kind| scope.objects.iter().any(|object| object.kind == kind);
        let is_complete = *part != ScopeKey::Rest && has(Kind::NodePool) && has(Kind::EC2NodeClass);
        let keys: BTreeSet<Key> = scope.objects.iter().filter_map(key).collect();
        let mut seen: BTreeMap<&Key, Vec<&Object>> = BTreeMap::new();
        // A complete scope sees the rest at most.
        let others = own.iter().filter(|(other, _)| *other != part && (!is_complete || **other == ScopeKey::Rest));
        for (other, (key, object)) in others.flat_map(|(other, objects)| objects.iter().map(move |it| (other, it))) {
            let is_in_sight = match (other, key) {
                (ScopeKey::Rest, None) => !object.kind.is_object(),
                (_, None) => false,
                // Objects outside of the folders are for all of them.
                (ScopeKey::Rest, Some(_)) if matches!(part, ScopeKey::Folder(_)) => true,
                _ => !is_complete,
            };
            let Some(key) = key.as_ref().filter(|key| is_in_sight && !keys.contains(*key)) else {
                if is_in_sight && !object.kind.is_object() {
                    scope.visit(object);
                }
                continue;
            };
            let alike = seen.entry(key).or_default();
            if !alike.iter().any(|it| it.document.value == object.document.value) {
                alike.push(object);
                scope.visit(object);
            }
        }
    }
    (scopes.into_values().collect(), findings)
}

/// Folders that are no kustomizations and define the same: each is for another cluster. Whoever means one cluster is told.
fn folders<'p>(
    objects: &[Object],
    path: impl Fn(usize) -> &'p str,
    typed: impl Fn(&str) -> String,
) -> (BTreeMap<String, ()>, Vec<Finding>) {
    let mut first: BTreeMap<Key, &Object> = BTreeMap::new();
    let mut found: BTreeMap<String, Option<Finding>> = BTreeMap::new();
    for object in objects.iter().filter(|object| object.build.is_none()) {
        let Some(key) = key(object) else { continue };
        let known = *first.entry(key).or_insert(object);
        let (one, other) = (folder(path(known.document.file)), folder(path(object.document.file)));
        if one == other {
            continue;
        }
        let (one, other) = where_they_part(one, other);
        let (kind, name) = (object.kind.name(), object.name().unwrap_or_default());
        // A plan of the root has both.
        let named = typed(if other.is_empty() { one } else { other });
        let shown =
            |folder: &str| if folder.is_empty() { "the root".to_owned() } else { format!("`{}`", typed(folder)) };
        let message = format!("{kind} `{name}` is defined in {} as well: each folder is judged alone", shown(one));
        let finding = Finding::at(&SEVERAL_FOLDERS, &object.document, "/metadata/name", FindingPlace::Value, message)
            .related(&known.document, "/metadata/name", "first defined here")
            .hint(format!(
                "right for folders of different clusters, and each is planned alone: `cutlist plan {named}`"
            ));
        found.entry(one.to_owned()).or_insert(None);
        found.entry(other.to_owned()).or_insert(None).get_or_insert(finding);
    }
    let findings = found.values().flatten().cloned().collect();
    (found.into_keys().filter(|folder| !folder.is_empty()).map(|folder| (folder, ())).collect(), findings)
}

/// Each path up to the first folder in which the two differ. Where one folder is in the other, the outer one stays as
/// it is.
fn where_they_part<'f>(one: &'f str, other: &'f str) -> (&'f str, &'f str) {
    let alike = one.split('/').zip(other.split('/')).take_while(|(one, other)| one == other).count();
    let first = |folder: &'f str| {
        let end = folder.match_indices('/').nth(alike).map_or(folder.len(), |(at, _)| at);
        folder.get(..end).unwrap_or(folder)
    };
    (first(one), first(other))
}

/// The one scope for objects that are used together, and findings about what can not stand in one scope. `name` gives
/// the folder of a kustomization.
pub fn together<'n>(objects: Vec<Object>, name: impl Fn(usize) -> &'n str) -> (LintScope, Vec<Finding>) {
    let mut known: BTreeMap<Key, Option<usize>> = BTreeMap::new();
    let mut findings = Vec::new();
    let mut scope = LintScope::default();
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
        let finding = Finding::at(&SEVERAL, &object.document, "/metadata/name", FindingPlace::Value, message);
        findings.push(finding.hint("name the folder of the kustomization that is meant"));
    }
    (scope, findings)
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    #[test]
    fn the_folder_that_is_planned_alone_has_a_name() {
        const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: default }\n";
        for (one, other, planned) in [
            ("blue/a.yaml", "z.yaml", "blue"),
            ("a.yaml", "blue/z.yaml", "blue"),
            ("blue/a.yaml", "green/a.yaml", "green"),
        ] {
            let files = [one, other].map(|path| SourceFile::new(path, POOL));
            let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
            let hints: Vec<String> = found.filter(|it| it.code == "CL0022").filter_map(|it| it.hint).collect();
            let expected = format!("`cutlist plan {planned}`");
            assert!(matches!(&hints[..], [hint] if hint.ends_with(&expected)), "{one} {other}: {hints:?}");
        }
    }
}
