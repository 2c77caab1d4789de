//! Where what a reason speaks of is written, so that its reader can go there.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of a file of the definitions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefinitionPlace {
    /// As findings name it.
    pub file: String,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for DefinitionPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// A sentence with the place of what it is about at its end.
pub fn with_place(text: &str, definition: Option<&DefinitionPlace>) -> String {
    definition.map_or_else(|| text.to_owned(), |place| format!("{text} ({place})"))
}

/// The JSON pointer of a member (RFC 6901).
pub fn field_of(pointer: &str, member: &str) -> String {
    format!("{pointer}/{}", member.replace('~', "~0").replace('/', "~1"))
}

/// The kind by which places of locked images are found; the lock has no name, and its fields are classes (`CLASS`) and images
/// (`CLASS/IMAGE`).
pub const IMAGE_LOCK: &str = "ImageLock";

/// The places of all definitions; none of those that come from the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionPlaces {
    /// By kind and name; of each by JSON pointer, where the document itself has the empty one.
    of: BTreeMap<(String, String), BTreeMap<String, DefinitionPlace>>,
    /// By name of an EC2NodeClass.
    classes: BTreeMap<String, ClassAsWritten>,
}

/// What definitions say of an EC2NodeClass, without values that are shown nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassAsWritten {
    /// SHA-256 in hexadecimal.
    pub hash: String,
    /// The variables of such values.
    pub hidden_variables: Vec<String>,
}

impl DefinitionPlaces {
    /// Where nothing comes from a file.
    pub fn none() -> &'static Self {
        static NONE: DefinitionPlaces = DefinitionPlaces { of: BTreeMap::new(), classes: BTreeMap::new() };
        &NONE
    }

    pub fn add(&mut self, kind: &str, name: &str, fields: BTreeMap<String, DefinitionPlace>) {
        self.of.insert((kind.to_owned(), name.to_owned()), fields);
    }

    pub fn add_class(&mut self, name: &str, class: ClassAsWritten) {
        self.classes.insert(name.to_owned(), class);
    }

    /// Nothing of one that is in the cluster alone, which no change of definitions changes.
    pub fn class(&self, name: &str) -> Option<&ClassAsWritten> {
        self.classes.get(name)
    }

    /// The place of a field; of one that nobody wrote, or that is not kept, that of its document.
    pub fn of(&self, kind: &str, name: &str, pointer: &str) -> Option<DefinitionPlace> {
        let fields = self.of.get(&(kind.to_owned(), name.to_owned()))?;
        fields.get(pointer).or_else(|| fields.get("")).cloned()
    }

    /// The same of a NodePool.
    pub fn of_pool(&self, name: &str, pointer: &str) -> Option<DefinitionPlace> {
        self.of("NodePool", name, pointer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_nobody_wrote_is_at_its_document() {
        let at = |line| DefinitionPlace { file: "a.yaml".to_owned(), line };
        let mut places = DefinitionPlaces::default();
        places.add("NodePool", "a", BTreeMap::from([(String::new(), at(3)), ("/spec/limits/cpu".to_owned(), at(9))]));
        assert_eq!(places.of_pool("a", "/spec/limits/cpu"), Some(at(9)));
        assert_eq!(places.of_pool("a", "/spec/limits/memory"), Some(at(3)));
        assert_eq!(places.of_pool("b", "/spec/limits/cpu"), None);
        assert_eq!(with_place("full", Some(&at(9))), "full (a.yaml:9)");
    }
}
