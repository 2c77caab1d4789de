//! What requirements leave of the instance types of the built-in catalog.

use std::sync::LazyLock;

use crate::api::keys;
use crate::core::catalog::Catalog;
use crate::core::catalog::matching::{Entry, Matching};
use crate::core::catalog::type_sets::TypeSet;
use crate::definitions::asked::{List, PLACES};

/// The built-in catalog, read once. Labels of instance types are the same in every region.
pub(super) static CATALOG: LazyLock<Option<Catalog>> = LazyLock::new(|| Catalog::built_in_anywhere().ok());
pub(in crate::definitions) static MATCHING: LazyLock<Option<Matching<'static>>> =
    LazyLock::new(|| Some(matching_of(CATALOG.as_ref()?)));

/// Labels of the operating system, which the class of a node decides.
pub(super) const OF_CLASS: [&str; 2] = [keys::OPERATING_SYSTEM, keys::WINDOWS_BUILD];

/// What a list leaves of the types, by what is about types alone. Places depend on the region, and what a class decides
/// does not belong to the type.
pub(super) struct TypesLeft<'l> {
    pub(super) list: &'l List,
    pub(super) entries: Vec<Entry>,
    pub(super) types: TypeSet<'static>,
}

impl<'l> TypesLeft<'l> {
    pub(super) fn of(list: &'l List, matching: &Matching<'static>) -> Self {
        let entries = entries(list);
        let types = matching.types(&matching.relevant(&entries));
        Self { list, entries, types }
    }
}

/// The requirements of a list that are about types.
pub(super) fn entries(list: &List) -> Vec<Entry> {
    let entries = list.written.iter().map(|written| Entry::new(&written.entry));
    entries.filter(|entry| !OF_CLASS.contains(&entry.key.as_str()) && !PLACES.contains(&entry.key.as_str())).collect()
}

fn matching_of(catalog: &Catalog) -> Matching<'_> {
    Matching::new(&catalog.instance_types, &catalog.region)
}
