//! What happens to nodes, in a form in which what was foreseen and what Karpenter did can be compared.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// A node that is made: what it is, and what was asked of it, which says how many pods of which size it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Made {
    pub pool: String,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub millicores: u64,
    pub mebibytes: u64,
    pub pods: u64,
}

/// A node that goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gone {
    pub why: Why,
    /// What it is, and whose pods it carries, where that is known: of nodes that are alike any will do, and Karpenter takes one by chance.
    pub alike: String,
    pub claim: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    Empty,
    Drifted,
    Underutilized,
    Expired,
    Other,
}

/// A set of both, as one look or one stretch of time has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    pub made: Vec<Made>,
    pub gone: Vec<Gone>,
}

impl Made {
    /// With what a NodeClaim asks for.
    pub fn new(pool: &Value, instance_type: &Value, zone: &Value, capacity_type: &Value, requests: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        Self {
            pool: text(pool),
            instance_type: text(instance_type),
            zone: text(zone),
            capacity_type: text(capacity_type),
            millicores: amount(&requests["cpu"], 1000),
            mebibytes: amount(&requests["memory"], 1) >> 20,
            pods: amount(&requests["pods"], 1),
        }
    }
}

/// A quantity in parts of one, rounded down; the forms that API servers write.
fn amount(quantity: &Value, parts: u64) -> u64 {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    let digits = text.trim_end_matches(|it: char| !it.is_ascii_digit());
    let number: u64 = digits.parse().unwrap_or(0);
    match text.split_at(digits.len()).1 {
        "m" => number * parts / 1000,
        "k" => number * parts * 1000,
        "M" => number * parts * 1_000_000,
        "Ki" => (number * parts) << 10,
        "Mi" => (number * parts) << 20,
        "Gi" => (number * parts) << 30,
        _ => number * parts,
    }
}

impl Why {
    /// By the word of a plan or of Karpenter.
    pub fn of(word: &str) -> Self {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            _ if word.starts_with("empty") => Self::Empty,
            _ if word.starts_with("drift") => Self::Drifted,
            _ if word.starts_with("underutilized") => Self::Underutilized,
            _ if word.starts_with("expire") => Self::Expired,
            _ => Self::Other,
        }
    }
}

impl Deeds {
    pub fn is_empty(&self) -> bool {
        self.made.is_empty() && self.gone.is_empty()
    }

    pub fn sorted(mut self) -> Self {
        self.made.sort_unstable();
        self.gone.sort_unstable();
        self
    }

    /// With nodes that are alike under one name.
    pub fn described(mut self, alike: &BTreeMap<String, String>) -> Self {
        for gone in &mut self.gone {
            gone.alike = alike.get(&gone.claim).unwrap_or(&gone.claim).clone();
        }
        self.sorted()
    }

    fn without_names(&self) -> Self {
        let mut deeds = self.clone();
        deeds.gone.iter_mut().for_each(|gone| gone.claim = gone.alike.clone());
        deeds.sorted()
    }

    /// One of the words by which misses are told apart; `None` where both are the same.
    pub fn difference(&self, did: &Self) -> Option<&'static str> {
        let (this, did) = (&self.without_names(), &did.without_names());
        this.difference_by_name(did)
    }

    fn difference_by_name(&self, did: &Self) -> Option<&'static str> {
        if self == did {
            return None;
        }
        let names = |deeds: &Self| deeds.gone.iter().map(|it| it.claim.clone()).collect::<Vec<_>>();
        let kinds = |deeds: &Self| {
            let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
            deeds
                .made
                .iter()
                .for_each(|it| *kinds.entry((it.pool.clone(), it.instance_type.clone())).or_default() += 1);
            kinds
        };
        Some(match () {
            () if did.is_empty() => "Karpenter did nothing",
            () if self.is_empty() => "nothing was foreseen",
            () if self.gone.len() != did.gone.len() => "another number of nodes goes",
            () if names(self).iter().ne(names(did).iter()) => "other nodes go",
            () if self.gone != did.gone => "nodes go for another reason",
            () if self.made.len() != did.made.len() => "another number of nodes is made",
            () if kinds(self) != kinds(did) => "nodes of other pools or types are made",
            () if self.made.iter().zip(&did.made).all(|(one, other)| one.zone == other.zone) => {
                "pods are grouped otherwise"
            }
            () => "nodes are made elsewhere, or as another capacity type",
        })
    }
}

impl fmt::Display for Deeds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return out.write_str("nothing");
        }
        let mut words = Vec::new();
        for it in &self.made {
            let Made { pool, instance_type, zone, capacity_type, millicores, mebibytes, pods } = it;
            words.push(format!(
                "+{pool} {instance_type} {zone} {capacity_type} ({pods} pods {millicores}m {mebibytes}Mi)"
            ));
        }
        words.extend(self.gone.iter().map(|it| format!("-{} {:?}", it.claim, it.why)));
        out.write_str(&words.join("; "))
    }
}
