//! Objects on their way into a snapshot: sorted by kind, trimmed, and merged when the whole input was understood.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::kinds::{KINDS, Keep, Kind, Makers, Merged, NAME_BYTES_MAX};
use super::object::{Object, ObjectPlace};
use super::objects::Snapshot;
use super::read_error::{ReadError, ReadReport};

/// `kubectl` never puts a list into a list; scripts do, once.
pub(super) const LIST_DEPTH_MAX: usize = 4;
/// Objects of one snapshot. A cluster of 5,000 nodes and 150,000 pods has fewer than 300,000; a kilobyte of gzip may hold millions.
pub const OBJECTS_MAX: usize = 1_000_000;

/// An object that was read, on its way into a snapshot.
pub(super) enum Read {
    Used(Keep),
    /// Of a kind that planning does not use, `v1/ConfigMap`, or does not use in this version.
    Unused {
        name: String,
        is_other_version: bool,
    },
}

/// Reads one object. Several may be read at once: what they share is found when they are added.
pub(super) fn read_object<'a>(
    api_version: &str,
    kind: &str,
    object: &Object<'_>,
    place: &dyn Fn() -> ObjectPlace<'a>,
) -> Result<Read, ReadError> {
    let Some(entry) = KINDS.iter().find(|entry| entry.kind == kind && entry.api_version == api_version) else {
        return match (api_version, kind) {
            ("v1", "Status") => Err(ReadError::Status { answer: answer(object) }),
            ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "Table") => Err(ReadError::Table),
            _ => {
                let is_other = |entry: &Kind| entry.kind == kind && group(entry.api_version) == group(api_version);
                let is_other_version = KINDS.iter().any(is_other);
                Ok(Read::Unused { name: format!("{api_version}/{kind}"), is_other_version })
            }
        };
    };
    let named = |problem| ReadError::Object { object: format!("{} ({})", describe(kind, object), place()), problem };
    (entry.read)(object).map(Read::Used).map_err(named)
}

#[derive(Default)]
pub(super) struct Collector {
    snapshot: Snapshot,
    makers: Makers,
    /// Objects and lists, also empty ones: what `kubectl get` prints for an empty cluster is a list.
    pub(super) documents: usize,
    objects: usize,
    /// With those that planning does not use.
    taken: usize,
    /// Kinds that planning uses, in versions that it does not read: `karpenter.sh/v1beta1/NodePool` to how many.
    other_versions: BTreeMap<String, usize>,
}

impl Collector {
    pub(super) fn add(&mut self, object: Read) -> Result<(), ReadError> {
        self.taken += 1;
        if self.taken > OBJECTS_MAX {
            return Err(ReadError::TooMany { limit: OBJECTS_MAX });
        }
        match object {
            Read::Used(keep) => {
                keep(&mut self.snapshot, &mut self.makers);
                self.objects += 1;
            }
            Read::Unused { name, is_other_version } => {
                if is_other_version {
                    *self.other_versions.entry(name.clone()).or_default() += 1;
                }
                *self.snapshot.ignored.entry(name).or_default() += 1;
            }
        }
        Ok(())
    }

    /// What there is instead, where there is no object of a kind that planning uses: `2 x v1/ConfigMap`.
    pub(super) fn only_unused(&self) -> Option<String> {
        if self.objects > 0 || self.snapshot.ignored.is_empty() {
            return None;
        }
        let kinds = self.snapshot.ignored.iter().map(|(kind, count)| format!("{count} x {kind}"));
        Some(kinds.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn merge_into(mut self, into: &mut Snapshot) -> ReadReport {
        let mut merged = Merged::default();
        for entry in KINDS {
            (entry.merge)(into, &mut self.snapshot, &mut merged);
        }
        for (kind, count) in self.snapshot.ignored {
            *into.ignored.entry(kind).or_default() += count;
        }
        let mut notes = merged.notes();
        for (kind, count) in self.other_versions {
            notes.push(format!("{count} x {kind} not used: another version of this kind is planned with"));
        }
        if self.objects == 0 {
            notes.push("no object of a kind that planning uses".to_owned());
        }
        ReadReport { objects: self.objects, notes }
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// What an API server answered instead of objects: `pods is forbidden (Forbidden)`.
fn answer(object: &Object<'_>) -> String {
    #[derive(Default, Deserialize)]
    struct Status {
        #[serde(default)]
        status: Option<String>,
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        reason: Option<String>,
    }
    let status: Status = match object {
        Object::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        Object::Value(value) => Status::deserialize(value).unwrap_or_default(),
    };
    match (status.message.filter(|message| !message.is_empty()), status.reason) {
        (Some(message), Some(reason)) => format!("{message} ({reason})"),
        (Some(text), None) | (None, Some(text)) => text,
        (None, None) => status.status.unwrap_or_else(|| "a Status without a message".to_owned()),
    }
}

/// `Pod shop/web-1`, as far as the object has a name.
fn describe(kind: &str, object: &Object<'_>) -> String {
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(default)]
        namespace: Option<String>,
        #[serde(default)]
        name: Option<String>,
    }
    let named: Named = match object {
        Object::Json(text) => serde_json::from_str(text).unwrap_or_default(),
        Object::Value(value) => Named::deserialize(value).unwrap_or_default(),
    };
    let cut = |text: String| text.chars().take(NAME_BYTES_MAX).collect::<String>();
    match (named.metadata.namespace.map(cut), named.metadata.name.map(cut)) {
        (_, None) => format!("{kind} without a name"),
        (None, Some(name)) => format!("{kind} {name}"),
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_small_object_again_and_again_is_not_kept_without_end() {
        for kind in ["Pod", "Event"] {
            let mut collector = Collector { taken: OBJECTS_MAX - 2, ..Collector::default() };
            let object = format!(r#"{{"metadata":{{"name":"a"}},"apiVersion":"v1","kind":"{kind}"}}"#);
            let place = || ObjectPlace::Document { number: 1, item: None };
            let mut add = || collector.add(read_object("v1", kind, &Object::Json(&object), &place).unwrap());
            add().unwrap();
            add().unwrap();
            assert!(matches!(add(), Err(ReadError::TooMany { limit: OBJECTS_MAX })), "{kind}");
        }
    }
}
