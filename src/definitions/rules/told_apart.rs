//! What tells NodePools apart for pods, for the rules that hold pools against each other.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::core::model::Requirements;
use crate::core::model::requirements::{is_well_known, normalized};
use crate::definitions::asked::Written;
use crate::definitions::document::Document;
use crate::definitions::revision::Object;

pub(super) const TAINTS: &str = "/spec/template/spec/taints";

/// The key, the value and the effect of a taint.
pub(super) type Taint<'d> = (&'d str, &'d str, &'d str);

/// Taints that keep pods away. A startup taint goes, and PreferNoSchedule is a wish.
pub(super) fn taints(pool: &Document) -> BTreeSet<Taint<'_>> {
    let taints = pool.value.pointer(TAINTS).and_then(Value::as_array).into_iter().flatten();
    taints.filter_map(read_taint).filter(|(.., effect)| *effect != "PreferNoSchedule").collect()
}

fn read_taint(taint: &Value) -> Option<Taint<'_>> {
    let text = |field: &str| taint.get(field).and_then(Value::as_str);
    Some((text("key")?, text("value").unwrap_or_default(), text("effect")?))
}

fn written(pool: &Object) -> impl Iterator<Item = &Written> {
    pool.asked.lists.iter().flat_map(|list| &list.written)
}

/// What the pool says of labels of its own, by which pods select it.
pub(super) fn own_labels(pool: &Object) -> BTreeSet<(&str, String)> {
    let own = written(pool).filter(|it| !is_well_known(normalized(&it.entry.key)));
    own.map(|it| {
        let mut values = it.entry.values.clone();
        values.sort_unstable();
        (it.entry.key.as_str(), format!("{:?} {values:?}", it.entry.operator))
    })
    .collect()
}

/// The labels and the requirements of the pool together.
pub(super) fn requirements(pool: &Object) -> Requirements {
    Requirements::from_entries(written(pool).map(|it| &it.entry))
}
