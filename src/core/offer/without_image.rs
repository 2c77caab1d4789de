//! Instance types for which `cutlist.lock` has no image: EC2 could not launch them, so they are not offered, and it is said.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::catalog::matching::Matching;
use crate::core::inputs::Inputs;
use crate::core::plan::{Note, NoteCode};

use super::images::Images;
use super::nothing::entries;

/// Types that one note names.
const TYPES_NAMED: usize = 3;

/// For each class the types that its NodePools would buy, and that have no locked image. O(pools x requirements x types), and nothing where
/// no image is locked.
pub fn notes(inputs: &Inputs<'_>) -> Vec<Note> {
    let mut lacking: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let matching = Matching::new(&inputs.catalog.instance_types, &inputs.catalog.region);
    for pool in inputs.node_pools {
        let class = &pool.spec.template.spec.node_class_ref;
        let Some(images) = inputs.policy.images.of_class(&class.name).filter(|_| !class.is_of_auto_mode()) else {
            continue;
        };
        let entries = entries(pool);
        let relevant = matching.relevant(&entries);
        let names = Images::Locked(images).lacking(matching.types(&relevant));
        if !names.is_empty() {
            lacking.entry(&class.name).or_default().extend(names);
        }
    }
    lacking.into_iter().map(|(class, types)| note(class, &types)).collect()
}

fn note(class: &str, types: &BTreeSet<String>) -> Note {
    let named: Vec<&str> = types.iter().take(TYPES_NAMED).map(String::as_str).collect();
    let more = types.len().saturating_sub(TYPES_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "cutlist.lock has no image of EC2NodeClass {class} for {}{more}, which its NodePools allow: they are not launched; \
         `cutlist ami lock` renews it",
        named.join(", ")
    );
    Note::new(NoteCode::TypesWithoutLockedImage, text).about("EC2NodeClass", class)
}
