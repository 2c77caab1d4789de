//! What was defined at another revision, for the rules about what may not change: the API server refuses such a change, and by then it
//! is merged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::Kind;
use super::revision::Object;

/// Definitions as they were, those in which no error was found.
#[derive(Clone, Debug, Default)]
pub struct Before {
    objects: Vec<Old>,
}

#[derive(Clone, Debug)]
struct Old {
    /// The file that it stood in, or the kustomization that it was built by.
    place: String,
    kind: Kind,
    name: String,
    value: Value,
}

impl Before {
    pub(super) fn of(objects: &[Object], paths: &[&str]) -> Self {
        let old = |object: &Object| {
            let place = paths.get(object.build.unwrap_or(object.document.file))?;
            let value = object.document.value.clone().into_value();
            Some(Old { place: (*place).to_owned(), kind: object.kind, name: name_of(object.kind, &value)?, value })
        };
        let kept = objects.iter().filter(|object| object.usable && !object.unchecked && !object.staged);
        Self { objects: kept.filter_map(old).collect() }
    }

    /// Adds what was defined elsewhere.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.objects.extend(other.objects);
        self
    }

    /// What the object at this place was. One that moved is found by its name, where only one had it.
    pub(super) fn find(&self, place: &str, kind: Kind, value: &Value) -> Option<&Value> {
        let name = name_of(kind, value)?;
        let mut named = self.objects.iter().filter(|old| old.kind == kind && old.name == name);
        match named.clone().find(|old| old.place == place) {
            Some(old) => Some(&old.value),
            None => named.next().filter(|_| named.next().is_none()).map(|old| &old.value),
        }
    }
}

/// A NodePool that is not defined any more.
#[derive(Debug)]
pub(super) struct Gone<'b> {
    /// The file that it stood in, or the kustomization that it was built by.
    pub place: &'b str,
    pub name: &'b str,
    pub value: &'b Value,
}

impl Before {
    /// Pools that were defined, and are not now, in the order of their places and names. One that may have moved is none of them.
    pub(super) fn gone_pools(&self, objects: &[Object], paths: &[&str]) -> Vec<Gone<'_>> {
        let now: BTreeSet<(&str, &str)> = pools(objects, paths).map(|(place, name, _)| (name, place)).collect();
        let was: BTreeMap<(&str, &str), &Value> =
            self.pools().map(|gone| ((gone.name, gone.place), gone.value)).collect();
        let has_moved = |name: &str| now.iter().any(|(of, place)| *of == name && !was.contains_key(&(*of, *place)));
        let is_gone = |it: &(&(&str, &str), &&Value)| !now.contains(it.0) && !has_moved(it.0.0);
        let gone = was.iter().filter(is_gone).map(|((name, place), value)| Gone { place, name, value });
        let mut gone: Vec<Gone<'_>> = gone.collect();
        gone.sort_by_key(|it| (it.place, it.name));
        gone
    }

    /// Whether a pool of this name was there.
    pub(super) fn had_pool(&self, name: &str) -> bool {
        self.pools().any(|pool| pool.name == name)
    }

    fn pools(&self) -> impl Iterator<Item = Gone<'_>> {
        let pools = self.objects.iter().filter(|old| old.kind == Kind::NodePool);
        pools.filter_map(|old| {
            let name = old.value.pointer("/metadata/name").and_then(Value::as_str)?;
            Some(Gone { place: &old.place, name, value: &old.value })
        })
    }
}

/// Place and name of each pool.
pub(super) fn pools<'o>(
    objects: &'o [Object],
    paths: &[&'o str],
) -> impl Iterator<Item = (&'o str, &'o str, &'o Object)> {
    let pools = objects.iter().filter(|object| object.kind == Kind::NodePool && !object.staged);
    pools.filter_map(move |pool| {
        let place = paths.get(pool.build.unwrap_or(pool.document.file))?;
        Some((*place, pool.name()?, pool))
    })
}

/// The name of an object with its namespace.
fn name_of(kind: Kind, value: &Value) -> Option<String> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name")?;
    let namespace = text("/metadata/namespace").filter(|it| kind.is_namespaced() && !it.is_empty());
    Some(format!("{}/{name}", namespace.unwrap_or("default")))
}
