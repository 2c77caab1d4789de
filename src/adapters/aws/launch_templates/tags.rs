//! Tags of what is launched: by them it is found again, so none is left to chance.

use std::collections::BTreeMap;

use crate::api::keys;

/// EC2's limits. Source: the EC2 user guide, "Tag your Amazon EC2 resources".
pub const TAGS_MAX: usize = 50;
const KEY_CHARACTERS_MAX: usize = 128;
const VALUE_CHARACTERS_MAX: usize = 256;

/// Tags that an instance gets after its launch: its name and its NodeClaim, and before that the launch itself and its part.
const ADDED_LATER: usize = 4;

/// Which tags of a class are ours to set: a whole key, or how it begins.
const RESERVED_KEYS: [&str; 5] =
    [keys::CLUSTER_NAME_TAG, keys::NODE_POOL, keys::NODE_CLAIM_TAG, keys::EC2_NODE_CLASS, keys::INSTALLATION];
const RESERVED_PREFIXES: [&str; 2] = [keys::CLUSTER_TAG_PREFIX, "cutlist.dev/"];

/// The key of the tag with the value `owned`, which says whose a thing is.
pub fn owner_key(cluster: &str) -> String {
    format!("{}/{cluster}", keys::CLUSTER_TAG_PREFIX)
}

/// Whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'o> {
    pub cluster: &'o str,
    pub installation: &'o str,
    pub node_pool: &'o str,
    pub node_class: &'o str,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    #[error("spec.tags.{key}: this tag is set by the controller; leave it out")]
    Reserved { key: String },
    #[error("spec.tags.{key}: tags that begin with `aws:` are for AWS alone; leave it out")]
    OfAws { key: String },
    #[error("spec.tags: a tag without a key")]
    NoKey,
    #[error("spec.tags.{key}: the key has {characters} characters, and EC2 takes {KEY_CHARACTERS_MAX}")]
    KeyTooLong { key: String, characters: usize },
    #[error("spec.tags.{key}: the value has {characters} characters, and EC2 takes {VALUE_CHARACTERS_MAX}")]
    ValueTooLong { key: String, characters: usize },
    #[error("spec.tags: {count} tags, and there is room for {room}: EC2 takes {TAGS_MAX}, of which some are set here")]
    TooMany { count: usize, room: usize },
}

/// The tags of the class and ours, for everything that a launch makes.
pub fn of_launch(class: &BTreeMap<String, String>, owner: Owner<'_>) -> Result<BTreeMap<String, String>, TagError> {
    let ours = [
        (owner_key(owner.cluster), "owned"),
        (keys::CLUSTER_NAME_TAG.to_owned(), owner.cluster),
        (keys::NODE_POOL.to_owned(), owner.node_pool),
        (keys::EC2_NODE_CLASS.to_owned(), owner.node_class),
        (keys::INSTALLATION.to_owned(), owner.installation),
    ];
    for (key, value) in class {
        check(key, value)?;
    }
    let room = TAGS_MAX - ours.len() - ADDED_LATER;
    if class.len() > room {
        return Err(TagError::TooMany { count: class.len(), room });
    }
    let ours = ours.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(class.clone().into_iter().chain(ours.map(|(key, value)| (key, value.to_owned()))).collect())
}

/// Whether a class may set a tag, and EC2 takes it.
pub fn check(key: &str, value: &str) -> Result<(), TagError> {
    let is_reserved = RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    if is_reserved {
        return Err(TagError::Reserved { key: key.to_owned() });
    }
    if key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("aws:")) {
        return Err(TagError::OfAws { key: key.to_owned() });
    }
    match (key.chars().count(), value.chars().count()) {
        (0, _) => Err(TagError::NoKey),
        (characters, _) if characters > KEY_CHARACTERS_MAX => {
            Err(TagError::KeyTooLong { key: key.to_owned(), characters })
        }
        (_, characters) if characters > VALUE_CHARACTERS_MAX => {
            Err(TagError::ValueTooLong { key: key.to_owned(), characters })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner<'static> =
        Owner { cluster: "demo", installation: "main", node_pool: "general", node_class: "default" };

    fn with(tags: &[(&str, &str)]) -> Result<BTreeMap<String, String>, TagError> {
        of_launch(&tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(), OWNER)
    }

    #[test]
    fn what_is_launched_says_whose_it_is() {
        let tags = with(&[("team", "a"), ("Name", "mine")]).unwrap();
        let written: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            written,
            [
                "Name=mine",
                "cutlist.dev/installation=main",
                "eks:eks-cluster-name=demo",
                "karpenter.k8s.aws/ec2nodeclass=default",
                "karpenter.sh/nodepool=general",
                "kubernetes.io/cluster/demo=owned",
                "team=a",
            ]
        );
    }

    #[test]
    fn keys_of_others_are_refused() {
        for key in [
            "karpenter.sh/nodepool",
            "karpenter.sh/nodeclaim",
            "karpenter.k8s.aws/ec2nodeclass",
            "eks:eks-cluster-name",
            "kubernetes.io/cluster/other",
            "cutlist.dev/launch",
        ] {
            assert_eq!(with(&[(key, "x")]), Err(TagError::Reserved { key: key.to_owned() }));
        }
        assert!(matches!(with(&[("AWS:cost", "x")]), Err(TagError::OfAws { .. })));
        assert!(with(&[("awsome", "x"), ("é", "x")]).is_ok());
    }

    #[test]
    fn limits_are_checked_before_ec2_does() {
        assert!(with(&[(&"k".repeat(128), &"é".repeat(256))]).is_ok(), "characters, and not bytes");
        assert!(matches!(with(&[(&"k".repeat(129), "")]), Err(TagError::KeyTooLong { characters: 129, .. })));
        assert!(matches!(with(&[("k", &"v".repeat(257))]), Err(TagError::ValueTooLong { characters: 257, .. })));
        assert_eq!(with(&[("", "x")]), Err(TagError::NoKey));
        let many = |count: usize| of_launch(&(0..count).map(|it| (format!("t{it}"), String::new())).collect(), OWNER);
        assert_eq!(many(41).unwrap().len(), TAGS_MAX - ADDED_LATER);
        let refused = many(42).unwrap_err().to_string();
        assert!(refused.contains("42 tags, and there is room for 41"), "{refused}");
    }
}
