//! Definitions beside the cluster they are for: what the cluster knows of variables that nobody gave a value, and which
//! variables stand in what differs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::document::{scalar, spans};
use super::kinds::Kind;
use super::open::OpenDefinition;
use super::substitution;
use super::variables::is_within;
use super::{Definition, Definitions};
use crate::api::keys;
use crate::core::model::shown_hash::is_same;
use crate::core::model::static_hash::{class_hash, node_pool_hash, whole_hash};
use crate::core::plan::{DefinitionPlace, Note, NoteCode};
use crate::core::snapshot::{Snapshot, kept};

/// The fields in which a variable decides which nodes there may be. Without a variable in another field, the rest of
/// the definition can be planned for.
const DECIDING: [(Kind, &[&str]); 4] = [
    (
        Kind::NodePool,
        &[
            "/metadata/name",
            "/spec/limits",
            "/spec/weight",
            "/spec/replicas",
            "/spec/template/spec/nodeClassRef",
            "/spec/template/spec/requirements",
            "/spec/template/spec/taints",
            "/spec/template/spec/startupTaints",
        ],
    ),
    (
        Kind::EC2NodeClass,
        &[
            "/metadata/name",
            "/spec/amiFamily",
            "/spec/blockDeviceMappings",
            "/spec/instanceStorePolicy",
            "/spec/kubelet",
        ],
    ),
    (Kind::NodeOverlay, &["/spec"]),
    (Kind::CapacityBuffer, &["/metadata", "/spec"]),
];

/// Most fields that a note names.
const FIELDS_MAX: usize = 5;

/// A kind of definition of which the cluster has objects, too.
trait Applied: DeserializeOwned + Serialize + Clone {
    const KIND: Kind;
    fn metadata(&self) -> &ObjectMeta;
    /// The hash of what launches depend on. An object of which a snapshot left something out has one, too.
    fn hash(&self) -> String;
    fn of(snapshot: &Snapshot) -> Vec<&Self>;
    fn defined(definitions: &mut Definitions) -> &mut Vec<Definition<Self>>;
}

impl Applied for crate::api::node_pool::NodePool {
    const KIND: Kind = Kind::NodePool;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn hash(&self) -> String {
        node_pool_hash(self)
    }

    fn of(snapshot: &Snapshot) -> Vec<&Self> {
        snapshot.node_pools.iter().collect()
    }

    fn defined(definitions: &mut Definitions) -> &mut Vec<Definition<Self>> {
        &mut definitions.node_pools
    }
}

impl Applied for crate::api::ec2_node_class::EC2NodeClass {
    const KIND: Kind = Kind::EC2NodeClass;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn hash(&self) -> String {
        class_hash(self)
    }

    fn of(snapshot: &Snapshot) -> Vec<&Self> {
        snapshot.node_classes.iter().collect()
    }

    fn defined(definitions: &mut Definitions) -> &mut Vec<Definition<Self>> {
        &mut definitions.node_classes
    }
}

impl Definitions {
    /// What a plan for this cluster is made from. A variable without a value has the one that the cluster's object shows.
    /// Where it shows none, and the variable decides which nodes there may be, the object counts as it is in the cluster, or
    /// not at all. Every such case gets a note.
    #[must_use]
    pub fn beside(&self, snapshot: &Snapshot) -> Self {
        let mut definitions = self.clone();
        for open in definitions.open.clone() {
            if open.kind == Kind::NodePool.name() {
                definitions.settle::<crate::api::node_pool::NodePool>(&open, snapshot);
            } else if open.kind == Kind::EC2NodeClass.name() {
                definitions.settle::<crate::api::ec2_node_class::EC2NodeClass>(&open, snapshot);
            } else {
                definitions.leave_out(&open);
            }
        }
        let notes = definitions.of_variables(snapshot);
        definitions.notes.extend(notes);
        // The open definitions are settled now.
        for open in &mut definitions.open {
            open.unchecked = false;
        }
        definitions
    }

    /// Whether the definitions may name this pool under a name that is not known, or hold it back until a variable is.
    pub fn may_name_pool(&self, name: &str) -> bool {
        let pools = self.open.iter().filter(|open| open.kind == Kind::NodePool.name());
        pools.into_iter().any(|open| open.name == name || open.has_open_name() && fits(&open.name, name))
    }

    /// Which variables stand in the fields that differ from the cluster's objects.
    pub fn of_variables(&self, snapshot: &Snapshot) -> Vec<Note> {
        let mut notes = changes(&self.node_pools, snapshot);
        notes.extend(changes(&self.node_classes, snapshot));
        notes
    }

    fn settle<T: Applied>(&mut self, open: &OpenDefinition, snapshot: &Snapshot) {
        let what = format!("{} {}", open.kind, open.name);
        let applied: Vec<&T> = T::of(snapshot);
        if open.has_open_name() {
            let in_name = ["/metadata/name".to_owned()];
            T::defined(self).retain(|it| it.value.metadata().name.as_ref() != Some(&open.name));
            let defined: Vec<String> =
                T::defined(self).iter().filter_map(|it| it.value.metadata().name.clone()).collect();
            let name = |it: &T| it.metadata().name.clone().unwrap_or_default();
            let kept: Vec<&T> =
                applied.into_iter().filter(|it| fits(&open.name, &name(it)) && !defined.contains(&name(it))).collect();
            let names: Vec<String> = kept.iter().map(|it| name(it)).collect();
            T::defined(self).extend(kept.into_iter().map(|it| open.definition(it.clone())));
            let variables = open.names_in(&in_name);
            if names.is_empty() {
                self.say_unplanned(open, &format!("is left out: there is no value for {variables} in its name"));
            } else {
                let names = names.join(", ");
                self.say(format!(
                    "{what} may be {names}, planned for as in the cluster: there is no value for {variables}"
                ));
            }
            return;
        }
        let applied = applied.into_iter().find(|it| it.metadata().name.as_ref() == Some(&open.name));
        let json = applied.and_then(|applied| serde_json::to_value(applied).ok());
        let own = T::deserialize(&open.value).ok();
        let as_written = applied.zip(own.as_ref()).is_some_and(|(applied, own)| is_same(&applied.hash(), &own.hash()));
        let Filled { value, fields, left } = fill(open, json.as_ref(), as_written);
        let position = |own: &mut Self| {
            T::defined(own).iter().position(|it| it.value.metadata().name.as_ref() == Some(&open.name))
        };
        let decides = left.iter().any(|pointer| open.decides(pointer));
        let typed = T::deserialize(&value).ok().filter(|_| !decides);
        if !fields.is_empty() && typed.is_some() {
            let (names, fields) = (open.names_in(&fields), named(&fields));
            self.say(format!("{what}: without a value for {names}, the cluster's is planned with in {fields}"));
        }
        match (typed, applied, position(self)) {
            (Some(typed), _, Some(position)) => {
                if let Some(definition) = T::defined(self).get_mut(position) {
                    definition.value = typed;
                    definition.hash_as_written = Some(open.hash_as_written());
                }
            }
            (Some(typed), _, None) => T::defined(self).push(open.definition(typed)),
            (None, Some(applied), position) => {
                let definition = open.definition(applied.clone());
                match position.and_then(|position| T::defined(self).get_mut(position)) {
                    Some(old) => *old = definition,
                    None => T::defined(self).push(definition),
                }
                let (names, fields) = (open.names_in(&left), named(&left));
                let predicate = format!("is planned for as in the cluster: there is no value for {names} in {fields}");
                self.say_unplanned(open, &predicate);
            }
            (None, None, position) => {
                if let Some(position) = position {
                    T::defined(self).remove(position);
                }
                let (names, fields) = (open.names_in(&left), named(&left));
                self.say_unplanned(open, &format!("is left out: there is no value for {names} in {fields}"));
            }
        }
    }

    fn leave_out(&mut self, open: &OpenDefinition) {
        let decides = open.unchecked || open.pointers.iter().any(|pointer| open.decides(pointer));
        if !decides {
            return;
        }
        let other = |metadata: &ObjectMeta| metadata.name.as_ref() != Some(&open.name);
        match open.kind {
            "NodeOverlay" => self.node_overlays.retain(|it| other(&it.value.metadata)),
            "CapacityBuffer" => self.capacity_buffers.retain(|it| other(&it.value.metadata)),
            "PodTemplate" => self.pod_templates.retain(|it| other(&it.value.metadata)),
            "DisruptionBudget" => self.disruption_budgets.retain(|it| other(&it.value.metadata)),
            _ => return,
        }
        let (names, fields) = (open.names_in(&open.pointers), named(&open.pointers));
        self.say_unplanned(open, &format!("is left out: there is no value for {names} in {fields}"));
    }

    /// Adds a note about a definition that no plan is made with as it is written.
    fn say_unplanned(&mut self, open: &OpenDefinition, predicate: &str) {
        let note = Note::of(NoteCode::Variables, (open.kind, &open.name), predicate);
        let own = self.open.iter_mut().find(|it| (&it.file, it.line) == (&open.file, open.line));
        if let Some(own) = own {
            own.unplanned = Some(note.text.clone());
        }
        self.notes.push(note);
    }

    fn say(&mut self, text: String) {
        self.notes.push(Note::new(NoteCode::Variables, text));
    }
}

impl OpenDefinition {
    fn has_open_name(&self) -> bool {
        self.pointers.iter().any(|pointer| pointer == "/metadata/name")
    }

    /// The variables in these texts.
    fn names_in(&self, pointers: &[String]) -> String {
        let mut names = BTreeSet::new();
        for pointer in pointers {
            let value = self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            names.extend(substitution::names(value).into_iter().map(str::to_owned));
            if self.keys.contains(pointer) {
                names.extend(substitution::names(&spans::last(pointer)).into_iter().map(str::to_owned));
            }
        }
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    fn decides(&self, pointer: &str) -> bool {
        let of_kind = DECIDING.iter().find(|(kind, _)| kind.name() == self.kind);
        of_kind.is_some_and(|(_, fields)| fields.iter().any(|field| is_within(field, pointer)))
    }

    /// The fields may be the cluster's. So only the document has a place.
    fn places(&self) -> BTreeMap<String, DefinitionPlace> {
        BTreeMap::from([(String::new(), DefinitionPlace { file: self.file.clone(), line: self.line })])
    }

    fn definition<T>(&self, value: T) -> Definition<T> {
        Definition {
            value,
            file: self.file.clone(),
            line: self.line,
            places: self.places(),
            variables: Default::default(),
            hash_as_written: Some(self.hash_as_written()),
            hidden_variables: self.as_written.hidden.clone(),
        }
    }

    /// Other variables in the definition may have values.
    fn hash_as_written(&self) -> String {
        self.as_written.hash.clone().unwrap_or_else(|| whole_hash(&self.value))
    }
}

struct Filled {
    value: Value,
    /// Fields that took the cluster's value.
    fields: Vec<String>,
    /// Pointers of texts that stay open.
    left: Vec<String>,
}

/// Puts the cluster's values where they fit the open text: what stands around the variables must be the same.
/// `as_written` says that the hashes show it to be applied as it is written, where a snapshot does not.
fn fill(open: &OpenDefinition, applied: Option<&Value>, as_written: bool) -> Filled {
    let mut filled = Filled { value: open.value.clone(), fields: Vec::new(), left: Vec::new() };
    for pointer in &open.pointers {
        let own = open.value.pointer(pointer).and_then(Value::as_str).filter(|_| !open.keys.contains(pointer));
        let there = applied.and_then(|applied| applied.pointer(pointer));
        match (own, there) {
            (Some(_), None) if applied.is_some_and(|applied| kept::leaves_out(open.kind, applied, pointer)) => {
                // A snapshot that was written to be shown does not say it. What it has is taken for it, also where hashes are
                // compared.
                if !as_written {
                    keep_hash(&mut filled.value, applied);
                    filled.fields.push(pointer.clone());
                }
            }
            (Some(own), Some(there)) if scalar(there).is_some_and(|text| text == own) => {
                // The cluster has it just as it is written.
            }
            (Some(own), Some(there)) if scalar(there).is_some_and(|text| fits(own, &text)) => {
                if let Some(place) = filled.value.pointer_mut(pointer) {
                    *place = there.clone();
                    filled.fields.push(pointer.clone());
                }
            }
            _ => filled.left.push(pointer.clone()),
        }
    }
    filled
}

fn keep_hash(value: &mut Value, applied: Option<&Value>) {
    let annotations = applied.and_then(|applied| applied.pointer("/metadata/annotations"));
    let hash = annotations.and_then(|annotations| annotations.get(keys::HASH_BEFORE_REDACTION));
    let metadata = value.pointer_mut("/metadata").and_then(Value::as_object_mut);
    let annotations =
        metadata.map(|metadata| metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new())));
    if let (Some(hash), Some(annotations)) = (hash, annotations.and_then(Value::as_object_mut)) {
        annotations.insert(keys::HASH_BEFORE_REDACTION.to_owned(), hash.clone());
    }
}

/// Whether `text` can be what becomes of `open` once its variables have values.
fn fits(open: &str, text: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = open;
    while let Some((before, after)) = rest.split_once("${") {
        literals.push(before);
        rest = after.split_once('}').map_or("", |(_, behind)| behind);
    }
    let Some(start) = literals.first() else { return open == text };
    let Some(text) = text.strip_prefix(*start).and_then(|text| text.strip_suffix(rest)) else { return false };
    let mut remaining = text;
    for literal in literals.iter().skip(1) {
        let Some((_, behind)) = remaining.split_once(*literal).filter(|_| !literal.is_empty()) else {
            if literal.is_empty() {
                continue;
            }
            return false;
        };
        remaining = behind;
    }
    true
}

fn named(pointers: &[String]) -> String {
    let mut fields: Vec<String> = pointers.iter().take(FIELDS_MAX).map(|pointer| spans::field_path(pointer)).collect();
    if pointers.len() > FIELDS_MAX {
        fields.push(format!("{} more", pointers.len() - FIELDS_MAX));
    }
    fields.join(", ")
}

/// A value that differs between runs makes nodes drift, and nobody changed a file: so it is said which variable it was.
fn changes<T: Applied>(defined: &[Definition<T>], snapshot: &Snapshot) -> Vec<Note> {
    let applied = T::of(snapshot);
    let mut notes = Vec::new();
    for definition in defined.iter().filter(|definition| !definition.variables.is_empty()) {
        let name = definition.value.metadata().name.clone();
        let Some(applied) = applied.iter().find(|it| it.metadata().name == name) else { continue };
        let (Ok(own), Ok(there)) = (serde_json::to_value(&definition.value), serde_json::to_value(applied)) else {
            continue;
        };
        let mut fields = Vec::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (pointer, variables) in definition.variables.iter().filter(|(pointer, _)| is_within("/spec", pointer)) {
            let differs = match kept::leaves_out(T::KIND.name(), &there, pointer) {
                true => !is_same(&definition.value.hash(), &applied.hash()),
                false => own.pointer(pointer) != there.pointer(pointer),
            };
            if differs {
                fields.push(pointer.clone());
                names.extend(variables.iter().map(String::as_str));
            }
        }
        if !fields.is_empty() {
            let (names, fields) = (names.into_iter().collect::<Vec<_>>().join(", "), named(&fields));
            let text = format!(
                "{} {} differs from the cluster's in fields that hold variables: {names} in {fields}",
                T::KIND.name(),
                name.unwrap_or_default()
            );
            notes.push(Note::new(NoteCode::Variables, text));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_text_fits_what_it_may_become() {
        for (open, text, expected) in [
            ("nodes-${CLUSTER}", "nodes-demo", true),
            ("nodes-${CLUSTER}", "node-demo", false),
            ("${REGION}a", "eu-west-1a", true),
            ("${REGION}a", "eu-west-1b", false),
            ("${A}-${B}", "x-y", true),
            ("${A}-${B}", "xy", false),
            ("${A}${B}", "x", true),
            ("${A}-x-${B}-x", "1-x-2-x", true),
            ("echo ${ROLE:-worker}", "echo ${ROLE:-worker}", true),
            ("a-${A}-a", "a-a", false),
            ("plain", "plain", true),
        ] {
            assert_eq!(fits(open, text), expected, "{open} {text}");
        }
    }
}
