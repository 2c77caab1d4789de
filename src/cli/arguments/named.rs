//! Values that are typed for one cluster of several.

use std::str::FromStr;

/// `NAME=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    pub name: String,
    pub path: String,
}

impl FromStr for NamedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.trim().is_empty() && !path.is_empty() => {
                Ok(Self { name: name.trim().to_owned(), path: path.to_owned() })
            }
            _ => Err("write NAME=PATH, such as blue=snapshots/blue.json".to_owned()),
        }
    }
}

/// `CLUSTER=NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterVariable {
    pub cluster: String,
    pub name: String,
    pub value: String,
}

impl FromStr for ClusterVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = || "write CLUSTER=NAME=VALUE, such as blue=cpu_limit=100".to_owned();
        let (cluster, variable) = text.split_once('=').ok_or_else(example)?;
        let cluster = cluster.trim();
        if cluster.is_empty() || !variable.contains('=') {
            return Err(example());
        }
        let (name, value) = super::parse_variable(variable)?;
        Ok(Self { cluster: cluster.to_owned(), name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_of_a_cluster_has_three_parts() {
        let parsed = |text: &str| text.parse::<ClusterVariable>();
        let of_blue = |value: &str| ClusterVariable {
            cluster: "blue".to_owned(),
            name: "cpu".to_owned(),
            value: value.to_owned(),
        };
        for (text, value) in [("blue=cpu=100", "100"), ("blue=cpu=", ""), ("blue=cpu=a=b", "a=b")] {
            assert_eq!(parsed(text), Ok(of_blue(value)), "{text}");
        }
        for text in ["cpu=100", "=cpu=100", "blue", "blue=2=1", ""] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
