//! Instance types for which `cutlist.lock` has no image: EC2 could not launch them, so they are not offered, and it is said.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::matching::{Entry, Matching};
use crate::inputs::Inputs;
use crate::plan::{Note, NoteCode};

use super::images::Images;

/// Types that one note names.
const TYPES_NAMED_MAX: usize = 3;

/// For each class the types that its NodePools would buy, and that have no locked image. O(pools x requirements x types), and nothing where
/// no image is locked.
pub fn notes(inputs: &Inputs<'_>) -> Vec<Note> {
    let locked = inputs.node_pools.iter().filter_map(|pool| {
        let class = &pool.spec.template.spec.node_class_ref;
        let images = inputs.policy.images.of_class(&class.name).filter(|_| !class.is_of_auto_mode())?;
        Some((pool, class.name.as_str(), images))
    });
    let locked: Vec<_> = locked.collect();
    // To index the catalog takes longer than all else here, and most clusters lock nothing.
    if locked.is_empty() {
        return Vec::new();
    }
    let matching = Matching::new(&inputs.catalog.instance_types, &inputs.catalog.region);
    let mut lacking: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (pool, class, images) in locked {
        let entries = Entry::of_pool(pool);
        let relevant = matching.relevant(&entries);
        let names = Images::Locked(images).lacking(matching.types(&relevant).iter());
        if !names.is_empty() {
            lacking.entry(class).or_default().extend(names);
        }
    }
    lacking.into_iter().map(|(class, types)| note(class, &types)).collect()
}

fn note(class: &str, types: &BTreeSet<String>) -> Note {
    let named: Vec<&str> = types.iter().take(TYPES_NAMED_MAX).map(String::as_str).collect();
    let more = types.len().saturating_sub(TYPES_NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "cutlist.lock has no image of EC2NodeClass {class} for {}{more}, which its NodePools allow: they are not launched; \
         `cutlist ami lock` renews it",
        named.join(", ")
    );
    Note::new(NoteCode::TypesWithoutLockedImage, text).about("EC2NodeClass", class)
}
