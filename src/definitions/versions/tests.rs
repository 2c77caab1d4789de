//! The table, and what it is held to.

use std::collections::BTreeSet;

use serde_json::Value;

use super::table::{FactKind, TABLE};
use super::*;
use crate::api::source::SourceFile;
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::model::requirements::AWS_LABELS;
use crate::definitions::kinds::Kind;
use crate::definitions::{GivenVariables, schema};

#[test]
fn every_line_of_the_table_is_read() {
    assert_eq!(TABLE.unread, Vec::<&str>::new());
    assert_eq!((TABLE.oldest, TABLE.kinds.len()), (0, 4));
}

#[test]
fn a_version_is_written_with_or_without_its_patch() {
    let parsed = |text: &str| text.parse::<KarpenterVersion>().map(|version| version.to_string());
    for (text, expected) in [("1.0", "1.0"), ("v1.9", "1.9"), ("1.10.2", "1.10"), ("v1.14.0", "1.14")] {
        assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
    }
    let newer = format!("1.{}", TABLE.newest + 1);
    for text in
        ["", "1", "1.", "1.x", "2.0", "0.37", "1.9.", "1.9.2.1", "1.09", "1.9-rc1", " 1.9", "1.99999999999", &newer]
    {
        assert_eq!(parsed(text), Err(UnknownVersion), "{text}");
    }
    assert_eq!(UnknownVersion.to_string(), format!("Karpenter 1.0 to 1.{} are known", TABLE.newest));
}

/// Where the settings take another version than the command line, one of them is wrong.
#[test]
fn the_settings_take_the_same_versions() {
    for text in ["1.0", "1.9", "1.10", "v1.14.3", "1.15", "1", "1.9.", "2.0", "1.09", "newest"] {
        let settings = format!(
            "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: {{ lint: {{ karpenterVersion: \"{text}\" }} }}\n"
        );
        let found = crate::definitions::lint(&[SourceFile::new("cutlist.yaml", settings)], &GivenVariables::default());
        assert_eq!(found.diagnostics.is_empty(), text.parse::<KarpenterVersion>().is_ok(), "{text}");
    }
}

/// A field of the schema that no version has would never be asked for, and one that it lacks would be refused as unknown.
#[test]
fn the_newest_version_has_the_fields_of_the_schema() {
    for (name, pointers) in &TABLE.kinds {
        let kind =
            Kind::ALL.into_iter().find(|kind| format!("{}/{}", kind.api_version(), kind.name()) == **name).unwrap();
        let is_field =
            |pointer: &&&str| pointers[**pointer].iter().any(|fact| fact.what == FactKind::Field && fact.is_current());
        let of_table: BTreeSet<String> =
            pointers.keys().filter(is_field).map(|pointer| (*pointer).to_owned()).collect();
        let mut of_schema = BTreeSet::new();
        fields(&schema::published(kind), "", &mut of_schema);
        // What of a kubelet's configuration there is has rules of its own.
        let is_compared = |pointer: &&String| !pointer.starts_with("/spec/kubelet/");
        let difference: Vec<&String> = of_table.symmetric_difference(&of_schema).filter(is_compared).collect();
        assert_eq!(difference, Vec::<&String>::new(), "{name}");
    }
}

/// Labels that are suggested, and that the planner takes for those of instance types.
#[test]
fn the_newest_version_takes_the_labels_that_are_known() {
    let facts = &TABLE.kinds["karpenter.sh/v1/NodePool"]["/spec/template/spec/requirements/[]/key"];
    let current = facts.iter().filter(|fact| fact.what == FactKind::Key && fact.is_current());
    let of_table: BTreeSet<&str> = current.filter_map(|fact| fact.name.strip_prefix(AWS_PREFIX)).collect();
    assert_eq!(of_table, AWS_LABELS.into_iter().collect());
}

fn fields(schema: &Value, pointer: &str, found: &mut BTreeSet<String>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if !(pointer.is_empty() && name == "status") {
            let pointer = format!("{pointer}/{name}");
            fields(member, &pointer, found);
            found.insert(pointer);
        }
    }
    for (keyword, part) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[keyword].is_object() {
            fields(&schema[keyword], &format!("{pointer}/{part}"), found);
        }
    }
}
