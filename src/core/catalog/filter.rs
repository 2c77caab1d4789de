//! Conditions on instance types as people type them: `family=c7a,c7i`, `instance-cpu>=8`, `zone!=us-east-1e`, `gpu-count`.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::model::resources::MEMORY;
use crate::model::{Quantity, QuantityError, Requirement, Resources};
use cutlist_api::keys;
use cutlist_api::node_pool::Operator;

use super::labels::AWS_PREFIX;
use super::{Catalog, InstanceType, Offering};

/// Labels whose values differ from offering to offering.
const OFFERING_LABELS: [&str; 3] = [keys::ZONE, keys::ZONE_ID, keys::CAPACITY_TYPE];

/// Names shown when nothing is near.
const SUGGESTIONS_MAX: usize = 5;

/// A condition as typed, before it is known which attribute is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    name: String,
    comparison: Comparison,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    In,
    NotIn,
    AtLeast,
    AtMost,
    MoreThan,
    LessThan,
    Exists,
    DoesNotExist,
}

/// Longer ones first, so that `>=` is not read as `>`.
const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("!=", Comparison::NotIn),
    ("=", Comparison::In),
    (">", Comparison::MoreThan),
    ("<", Comparison::LessThan),
];

#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    #[error(
        "`{0}` is no condition: write LABEL=VALUE[,VALUE], LABEL!=VALUE, LABEL>=NUMBER (or <=, >, <), LABEL, or !LABEL"
    )]
    Malformed(String),
    #[error("`{filter}` compares with `{value}`, which is not a whole number")]
    NotANumber { filter: String, value: String },
    #[error("in `{filter}`")]
    NotAQuantity { filter: String, source: QuantityError },
    #[error("no instance type has a label or resource `{name}`; {}", suggestion(near))]
    Unknown { name: String, near: Vec<String> },
}

fn suggestion(near: &[String]) -> String {
    if near.is_empty() {
        "it has labels such as instance-family".to_owned()
    } else {
        format!("near: {}", near.join(", "))
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || FilterError::Malformed(text.to_owned());
        let first = COMPARISONS
            .iter()
            .filter_map(|(sign, comparison)| text.find(sign).map(|place| (place, *sign, *comparison)))
            // The leftmost; of two at the same place the longer, which stands first in the list.
            .reduce(|best, other| if other.0 < best.0 { other } else { best });
        let (name, comparison, values) = match first {
            Some((place, sign, comparison)) => {
                let (name, rest) = text.split_at_checked(place).ok_or_else(malformed)?;
                let values = rest.strip_prefix(sign).unwrap_or(rest).split(',').map(|value| value.trim().to_owned());
                (name, comparison, values.collect())
            }
            None => match text.strip_prefix('!') {
                Some(name) => (name, Comparison::DoesNotExist, Vec::new()),
                None => (text, Comparison::Exists, Vec::new()),
            },
        };
        let name = name.trim().to_owned();
        let one_value = !matches!(comparison, Comparison::In | Comparison::NotIn | Comparison::Exists);
        if name.is_empty() || name.contains(char::is_whitespace) || (one_value && values.len() > 1) {
            return Err(malformed());
        }
        Ok(Self { name, comparison, values })
    }
}

impl std::fmt::Display for Filter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign =
            COMPARISONS.iter().find(|(_, comparison)| *comparison == self.comparison).map_or("", |(sign, _)| sign);
        let negation = if self.comparison == Comparison::DoesNotExist { "!" } else { "" };
        write!(formatter, "{negation}{}{sign}{}", self.name, self.values.join(","))
    }
}

/// The catalog with the types that satisfy all filters. Filters on zone and capacity type also choose among the
/// offerings; a type that is left with none is gone.
pub fn apply(mut catalog: Catalog, filters: &[Filter]) -> Result<Catalog, FilterError> {
    let conditions =
        filters.iter().map(|filter| Condition::resolve(filter, &catalog)).collect::<Result<Vec<_>, _>>()?;
    catalog.instance_types.retain_mut(|instance_type| conditions.iter().all(|condition| condition.keep(instance_type)));
    Ok(catalog)
}

/// A filter whose name was found.
enum Condition {
    Label(String, Requirement),
    Offering(&'static str, Requirement),
    Resource(String, Comparison, Vec<i64>),
}

impl Condition {
    fn resolve(filter: &Filter, catalog: &Catalog) -> Result<Self, FilterError> {
        let labels: BTreeSet<&str> =
            catalog.instance_types.iter().flat_map(|it| it.requirements.keys()).map(String::as_str).collect();
        let resources: BTreeSet<&str> =
            catalog.instance_types.iter().flat_map(|it| it.capacity.iter()).map(|(name, _)| name).collect();
        let name = filter.name.as_str();
        if let Some(label) = OFFERING_LABELS.into_iter().find(|label| *label == name || short(label) == name) {
            return Ok(Self::Offering(label, filter.requirement()?));
        }
        if resources.contains(name) {
            return Ok(Self::Resource(name.to_owned(), filter.comparison, filter.amounts(name)?));
        }
        let full = |candidate: &&&str| **candidate == name;
        let without_prefix = |candidate: &&&str| short(candidate) == name;
        let shortest = |candidate: &&&str| {
            candidate.strip_prefix(AWS_PREFIX).and_then(|rest| rest.strip_prefix("instance-")) == Some(name)
        };
        let label = labels.iter().find(full).or_else(|| labels.iter().find(without_prefix));
        if let Some(label) = label.or_else(|| labels.iter().find(shortest)) {
            return Ok(Self::Label((*label).to_owned(), filter.requirement()?));
        }
        Err(FilterError::Unknown { name: name.to_owned(), near: near(name, labels.union(&resources)) })
    }

    fn keep(&self, instance_type: &mut InstanceType) -> bool {
        match self {
            Self::Label(key, requirement) => match instance_type.requirements.get(key) {
                Some(values) => values.iter().any(|value| requirement.allows(value)),
                None => requirement.allows_absence(),
            },
            Self::Offering(key, requirement) => {
                instance_type.offerings.retain(|offering| match label_of(offering, key) {
                    Some(value) => requirement.allows(value),
                    None => requirement.allows_absence(),
                });
                !instance_type.offerings.is_empty()
            }
            Self::Resource(name, comparison, amounts) => {
                let amount = amount(instance_type, name);
                let compares = |holds: fn(&i64, &i64) -> bool| amounts.iter().all(|other| holds(&amount, other));
                match comparison {
                    Comparison::In => amounts.contains(&amount),
                    Comparison::NotIn => !amounts.contains(&amount),
                    Comparison::AtLeast => compares(i64::ge),
                    Comparison::AtMost => compares(i64::le),
                    Comparison::MoreThan => compares(i64::gt),
                    Comparison::LessThan => compares(i64::lt),
                    Comparison::Exists => amount > 0,
                    Comparison::DoesNotExist => amount == 0,
                }
            }
        }
    }
}

impl Filter {
    fn requirement(&self) -> Result<Requirement, FilterError> {
        let operator = match self.comparison {
            Comparison::In => Operator::In,
            Comparison::NotIn => Operator::NotIn,
            Comparison::AtLeast => Operator::Gte,
            Comparison::AtMost => Operator::Lte,
            Comparison::MoreThan => Operator::Gt,
            Comparison::LessThan => Operator::Lt,
            Comparison::Exists => Operator::Exists,
            Comparison::DoesNotExist => Operator::DoesNotExist,
        };
        let numeric = matches!(operator, Operator::Gte | Operator::Lte | Operator::Gt | Operator::Lt);
        match self.values.iter().find(|value| numeric && value.parse::<i64>().is_err()) {
            Some(value) => Err(FilterError::NotANumber { filter: self.to_string(), value: value.clone() }),
            None => Ok(Requirement::new(operator, self.values.iter().cloned())),
        }
    }

    fn amounts(&self, resource: &str) -> Result<Vec<i64>, FilterError> {
        let amount = |text: &String| match text.parse::<Quantity>() {
            Ok(quantity) => Ok(Resources::amount(resource, quantity)),
            Err(source) => Err(FilterError::NotAQuantity { filter: self.to_string(), source }),
        };
        self.values.iter().map(amount).collect()
    }
}

/// Memory as it is sold, since that is what tables say; anything else as the capacity.
fn amount(instance_type: &InstanceType, resource: &str) -> i64 {
    match resource {
        MEMORY => instance_type.sold_memory_bytes(),
        other => instance_type.capacity.get(other),
    }
}

fn label_of<'a>(offering: &'a Offering, key: &str) -> Option<&'a str> {
    match key {
        keys::ZONE => Some(&offering.zone),
        keys::ZONE_ID => offering.zone_id.as_deref(),
        keys::CAPACITY_TYPE => Some(&offering.capacity_type),
        _ => None,
    }
}

/// The name without its prefix.
fn short(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// What may have been meant: names that hold what was typed, else the ones with the fewest letters changed.
fn near<'a>(typed: &str, known: impl Iterator<Item = &'a &'a str>) -> Vec<String> {
    let typed = short(typed);
    let mut ranked: Vec<(usize, &str)> = known
        .map(|name| short(name))
        .map(|name| {
            let shortest = name.strip_prefix("instance-").unwrap_or(name);
            let distance = if !typed.is_empty() && name.contains(typed) {
                1
            } else {
                strsim::damerau_levenshtein(typed, name).min(strsim::damerau_levenshtein(typed, shortest))
            };
            (distance, name)
        })
        .filter(|(distance, _)| *distance <= (typed.chars().count() / 3).max(1))
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(filters: &[&str]) -> Vec<String> {
        let filters: Vec<Filter> = filters.iter().map(|text| text.parse().unwrap()).collect();
        let catalog = apply(Catalog::built_in("us-east-1").unwrap(), &filters).unwrap();
        catalog.instance_types.into_iter().map(|instance_type| instance_type.name).collect()
    }

    fn error(filter: &str) -> String {
        match filter.parse() {
            Ok(filter) => apply(Catalog::built_in("us-east-1").unwrap(), &[filter]).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn labels_go_by_their_full_and_short_names() {
        let expected = ["c7a.2xlarge", "c7a.xlarge"];
        for family in ["karpenter.k8s.aws/instance-family=c7a", "instance-family=c7a", "family=c7a", "family = c7a "] {
            assert_eq!(names(&[family, "cpu>=4", "instance-cpu<=8"]), expected, "{family}");
        }
        assert_eq!(names(&["instance-type=m5.large,c5.large"]), ["c5.large", "m5.large"]);
    }

    #[test]
    fn comparisons_are_of_numbers() {
        assert_eq!(names(&["family=m5", "cpu>64"]), ["m5.24xlarge", "m5.metal"]);
        assert_eq!(names(&["family=m5", "memory<16Gi"]), ["m5.large"]);
        assert_eq!(names(&["family=m5", "memory=16Gi"]), ["m5.xlarge"]);
        assert_eq!(
            names(&["family=m7i,m7i-flex", "capability-flex=true", "size!=large,xlarge", "cpu<16"]),
            ["m7i-flex.2xlarge"]
        );
    }

    #[test]
    fn existence_can_be_asked() {
        assert_eq!(names(&["family=g5,m5", "instance-gpu-name", "size=xlarge"]), ["g5.xlarge"]);
        assert_eq!(names(&["family=g5,m5", "!gpu-name", "size=xlarge"]), ["m5.xlarge"]);
        assert_eq!(names(&["family=g5,m5", "nvidia.com/gpu>=8"]), ["g5.48xlarge"]);
    }

    #[test]
    fn zone_and_capacity_type_choose_offerings() {
        let filters =
            ["instance-type=c5.large", "zone=us-east-1b", "capacity-type!=spot"].map(|it| it.parse().unwrap());
        let catalog = apply(Catalog::built_in("us-east-1").unwrap(), &filters).unwrap();
        let [offering] = catalog.instance_types[0].offerings.as_slice() else { panic!("one offering") };
        assert_eq!((offering.zone.as_str(), offering.capacity_type.as_str()), ("us-east-1b", "on-demand"));
        assert!(names(&["zone=us-east-1z"]).is_empty());
    }

    #[test]
    fn unknown_names_are_answered_with_near_ones() {
        assert_eq!(error("famly=c7a"), "no instance type has a label or resource `famly`; near: instance-family");
        assert_eq!(
            error("bandwidth>=1"),
            "no instance type has a label or resource `bandwidth`; near: instance-ebs-bandwidth, instance-network-bandwidth"
        );
        let nothing = "no instance type has a label or resource `colour`; it has labels such as instance-family";
        assert_eq!(error("colour=red"), nothing);
    }

    #[test]
    fn bad_filters_are_errors() {
        for filter in ["", "=", "=c7a", "!", " ", "cpu>=1,2", "a b=c", ">=8"] {
            assert!(error(filter).contains("is no condition"), "{filter}: {}", error(filter));
        }
        assert_eq!(error("generation>=new"), "`generation>=new` compares with `new`, which is not a whole number");
        assert_eq!(error("memory>=much"), "in `memory>=much`");
    }
}
