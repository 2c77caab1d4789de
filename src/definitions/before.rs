//! What was defined at another revision, for the rules about what may not change: the API server refuses such a change, and by then it
//! is merged.

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

    /// The same with what was defined elsewhere.
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

/// Name with namespace.
fn name_of(kind: Kind, value: &Value) -> Option<String> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name")?;
    let namespace = text("/metadata/namespace").filter(|it| kind.is_namespaced() && !it.is_empty());
    Some(format!("{}/{name}", namespace.unwrap_or("default")))
}
