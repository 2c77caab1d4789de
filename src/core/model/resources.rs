//! Amounts of resources by name, in the integer unit that each is planned in.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::quantity::{Quantity, QuantityError};
use cutlist_api::node_pool::IntOrString;

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const PODS: &str = "pods";
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Only in limits and in sums over nodes.
pub const NODES: &str = "nodes";

/// Resource name to amount: `cpu` in thousandths of a core, everything else in whole units (bytes, pieces).
/// Serialised as Kubernetes quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resources(BTreeMap<String, i64>);

impl Resources {
    pub fn new() -> Self {
        Self::default()
    }

    /// The quantities of an object of Kubernetes; the error names the resource.
    pub fn of(quantities: &BTreeMap<String, IntOrString>) -> Result<Self, (String, QuantityError)> {
        Self::parse(quantities.iter().map(|(name, quantity)| (name.as_str(), quantity.to_string())))
    }

    /// Reads quantities; the error names the resource.
    pub fn parse<'a, T: AsRef<str>>(
        quantities: impl IntoIterator<Item = (&'a str, T)>,
    ) -> Result<Self, (String, QuantityError)> {
        let mut resources = Self::new();
        for (name, text) in quantities {
            let quantity = text.as_ref().trim().parse::<Quantity>().map_err(|error| (name.to_owned(), error))?;
            resources.set(name, Self::amount(name, quantity));
        }
        Ok(resources)
    }

    /// The integer amount of a quantity of this resource, rounded up.
    pub fn amount(name: &str, quantity: Quantity) -> i64 {
        if name == CPU { quantity.milli() } else { quantity.units() }
    }

    /// 0 where absent.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn set(&mut self, name: &str, amount: i64) {
        self.0.insert(name.to_owned(), amount);
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds each amount, saturating.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self.get(name).saturating_add(amount);
            self.set(name, sum);
        }
    }

    /// Subtracts each amount, saturating; results may be negative.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let difference = self.get(name).saturating_sub(amount);
            self.set(name, difference);
        }
    }

    /// Each amount becomes the larger of the two.
    pub fn maximum(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if amount > self.get(name) || !self.contains(name) {
                self.set(name, amount);
            }
        }
    }

    /// Whether every positive amount asked for is there.
    pub fn fits_in(&self, available: &Self) -> bool {
        self.iter().all(|(name, amount)| amount <= 0 || amount <= available.get(name))
    }
}

/// The amount as Kubernetes writes it: `5150m` or `5` for cpu, bytes in the largest binary unit that is exact.
pub fn format_amount(name: &str, amount: i64) -> String {
    const BINARY: [(&str, i64); 5] =
        [("Pi", 1 << 50), ("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    if name == CPU {
        return if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") };
    }
    let unit = BINARY.iter().find(|(_, size)| is_in_bytes(name) && amount != 0 && amount % size == 0);
    unit.map_or_else(|| amount.to_string(), |(suffix, size)| format!("{}{suffix}", amount / size))
}

/// Whether amounts of a resource are bytes: memory and disks are, and huge pages of whichever size.
pub fn is_in_bytes(name: &str) -> bool {
    name == MEMORY || name == EPHEMERAL_STORAGE || name.starts_with("hugepages-")
}

impl FromIterator<(String, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (String, i64)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

impl Serialize for Resources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, amount)| (name, format_amount(name, amount))))
    }
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let quantities = BTreeMap::<String, IntOrString>::deserialize(deserializer)?;
        Self::of(&quantities).map_err(|(name, error)| serde::de::Error::custom(format!("{name}: {error}")))
    }
}

impl JsonSchema for Resources {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resources".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Resource name to Kubernetes quantity",
            "additionalProperties": { "type": ["string", "number"] }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_trip_as_quantities() {
        let resources: Resources =
            serde_json::from_str(r#"{"cpu": "7910m", "memory": "14162Mi", "pods": 58}"#).unwrap();
        assert_eq!(resources.get(CPU), 7910);
        assert_eq!(resources.get(MEMORY), 14162 << 20);
        assert_eq!(serde_json::to_string(&resources).unwrap(), r#"{"cpu":"7910m","memory":"14162Mi","pods":"58"}"#);
    }

    #[test]
    fn absent_is_zero_and_nothing_overflows() {
        let mut sum: Resources = [(CPU.to_owned(), i64::MAX)].into_iter().collect();
        sum.add(&sum.clone());
        assert_eq!(sum.get(CPU), i64::MAX);
        assert!(!sum.fits_in(&Resources::new()));
        assert!(Resources::new().fits_in(&sum));
    }
}
