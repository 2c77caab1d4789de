//! What differs between what two revisions define: which definition came, went, was renamed or says something else, and where that stands.

mod fields;
mod lines;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::broken::{is_namespaced, name_of};
use super::{Definition, Definitions};
use crate::api::source::SourceFile;
use crate::core::plan::IMAGE_LOCK;

pub use fields::FieldChange;

/// What a definition is called that is not an object: `cutlist.yaml`.
pub const SETTINGS: &str = "Settings";

/// Fields that one change names; the rest is counted.
const FIELDS_MAX: usize = 12;

/// One definition that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `NodePool`, or [`SETTINGS`].
    pub kind: &'static str,
    /// `name`, or `namespace/name`; empty for settings.
    pub name: String,
    pub what: ChangeKind,
    /// As the files of the head have it; as the base has it where it is gone.
    pub file: String,
    /// From 1: the first that differs.
    pub line: usize,
    pub fields: Vec<FieldChange>,
    pub further_fields: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Removed,
    /// Says the same under another name.
    Renamed {
        from: String,
    },
    Changed,
}

/// A revision: what it defines, and its files.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    pub definitions: &'a Definitions,
    pub files: &'a [SourceFile],
}

/// What the head defines otherwise than the base, by file and line, what can not be used among it. What only looks different (comments,
/// order, files that were moved) is none. Values that came from the environment are hidden.
pub fn changes(base: Side<'_>, head: Side<'_>) -> Vec<Change> {
    let (before, after) = (objects(base.definitions), objects(head.definitions));
    let (mut gone, mut came) = (Vec::new(), Vec::new());
    let mut found = Vec::new();
    for (key, object) in &after {
        match before.get(key) {
            Some(other) if other.value == object.value => {}
            Some(other) => found.push(changed(key, other, object, base, head)),
            None => came.push((key, object)),
        }
    }
    gone.extend(before.iter().filter(|(key, _)| !after.contains_key(*key)));
    for (key, object) in came {
        let twin = gone.iter().position(|(other_key, other)| other_key.0 == key.0 && unnamed(other) == unnamed(object));
        let what = match twin {
            Some(twin) => ChangeKind::Renamed { from: gone.remove(twin).0.1.clone() },
            None => ChangeKind::Added,
        };
        found.push(whole(key, object, what));
    }
    found.extend(gone.into_iter().map(|(key, object)| whole(key, object, ChangeKind::Removed)));
    found.extend(of_settings(base, head));
    let masks = &head.definitions.masks;
    for field in found.iter_mut().flat_map(|change| &mut change.fields) {
        [&mut field.before, &mut field.after].into_iter().flatten().for_each(|text| *text = masks.text(text));
    }
    found.sort_by(|one, two| {
        (&one.file, one.line, one.kind, &one.name).cmp(&(&two.file, two.line, two.kind, &two.name))
    });
    found
}

/// Kind, and name with namespace.
type Key = (&'static str, String);

struct Object<'a> {
    value: Value,
    /// Whether the value has the form of its kind: one without has no defaults in it.
    has_form: bool,
    file: &'a str,
    line: usize,
}

fn objects(definitions: &Definitions) -> BTreeMap<Key, Object<'_>> {
    let mut objects = BTreeMap::new();
    add(&mut objects, "NodePool", &definitions.node_pools);
    add(&mut objects, "EC2NodeClass", &definitions.node_classes);
    add(&mut objects, "NodeOverlay", &definitions.node_overlays);
    add(&mut objects, "CapacityBuffer", &definitions.capacity_buffers);
    add(&mut objects, "PodTemplate", &definitions.pod_templates);
    add(&mut objects, "DisruptionBudget", &definitions.disruption_budgets);
    if let Some(lock) = &definitions.image_lock {
        for class in &lock.value.node_classes {
            let place = lock.places.get(&class.name);
            let line = place.map_or(lock.line, |place| place.line);
            let value = serde_json::to_value(class).unwrap_or_default();
            objects.insert((IMAGE_LOCK, class.name.clone()), Object { value, has_form: true, file: &lock.file, line });
        }
    }
    for open in &definitions.open {
        let Some(name) = name_of(open.kind, &open.value) else { continue };
        let object = || Object { value: open.value.clone(), has_form: false, file: &open.file, line: open.line };
        objects.entry((open.kind, name)).or_insert_with(object);
    }
    for broken in &definitions.broken {
        let (value, has_form) = (broken.value.clone(), broken.has_form);
        let object = || Object { value, has_form, file: &broken.file, line: broken.line };
        objects.entry((broken.kind, broken.name.clone())).or_insert_with(object);
    }
    objects
}

fn add<'a, T: Serialize>(
    objects: &mut BTreeMap<Key, Object<'a>>,
    kind: &'static str,
    definitions: &'a [Definition<T>],
) {
    for definition in definitions {
        // A definition is plain data, it always has a JSON form.
        let mut value = serde_json::to_value(&definition.value).unwrap_or_default();
        if let Some(metadata) =
            value.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| !is_namespaced(kind))
        {
            metadata.remove("namespace");
        }
        let name = name_of(kind, &value).unwrap_or_default();
        objects.insert((kind, name), Object { value, has_form: true, file: &definition.file, line: definition.line });
    }
}

fn unnamed(object: &Object<'_>) -> Value {
    let mut value = object.value.clone();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
    }
    value
}

fn whole(key: &Key, object: &Object<'_>, what: ChangeKind) -> Change {
    Change {
        kind: key.0,
        name: key.1.clone(),
        what,
        file: object.file.to_owned(),
        line: object.line,
        fields: Vec::new(),
        further_fields: 0,
    }
}

fn changed(key: &Key, before: &Object<'_>, after: &Object<'_>, base: Side<'_>, head: Side<'_>) -> Change {
    let (file, line) =
        lines::of_change((before.file, before.line), (after.file, after.line), &key.1, base.files, head.files);
    let mut change = with_fields(whole(key, after, ChangeKind::Changed), (file, line), &before.value, &after.value);
    // Defaults that only one of them has are no difference that anybody wrote.
    if before.has_form != after.has_form {
        change.fields.retain(|field| field.is_secret || (field.before.is_some() && field.after.is_some()));
        change.further_fields = 0;
    }
    change
}

fn with_fields(change: Change, (file, line): (String, usize), before: &Value, after: &Value) -> Change {
    let mut fields = fields::differing(before, after);
    let further_fields = fields.len().saturating_sub(FIELDS_MAX);
    fields.truncate(FIELDS_MAX);
    Change { file, line, fields, further_fields, ..change }
}

fn of_settings(base: Side<'_>, head: Side<'_>) -> Option<Change> {
    let value = |side: Side<'_>| serde_json::to_value(&side.definitions.settings).unwrap_or_default();
    let (before, after) = (value(base), value(head));
    if before == after {
        return None;
    }
    let is_settings = |file: &&SourceFile| {
        file.has_content() && matches!(file.path.rsplit('/').next(), Some("cutlist.yaml" | "cutlist.yml"))
    };
    let path = |side: Side<'_>| side.files.iter().find(is_settings).map(|file| file.path.clone());
    let what = match (path(base), path(head)) {
        (None, Some(_)) => ChangeKind::Added,
        (Some(_), None) => ChangeKind::Removed,
        _ => ChangeKind::Changed,
    };
    let file = path(head).or_else(|| path(base)).unwrap_or_default();
    let line = lines::first_differing(&file, 1, base.files, head.files);
    let key = (SETTINGS, String::new());
    let object = Object { value: Value::Null, has_form: true, file: &file, line };
    Some(with_fields(whole(&key, &object, what), (file.clone(), line), &before, &after))
}

#[cfg(test)]
mod tests;
