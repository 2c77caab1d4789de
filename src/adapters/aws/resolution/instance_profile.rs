//! The instance profile of a class with a role: one name for a class and its role, looked for before it is made, so that a stale read of
//! IAM makes no second one. Source: reference, section 6.6; its name has a random part, which made hundreds of them.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::super::api::account::{InstanceProfile, NewInstanceProfile};
use super::super::api::{Action, ApiError, Ec2Api, Tags};
use super::super::failures::FailureClass;
use super::super::launch_templates::tags::owner_key;
use super::cluster::Identity;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::core::model::hexadecimal;
use crate::ports::is_to_come;

/// IAM takes 128 characters.
const CLUSTER_CHARACTERS: usize = 100;
/// Hexadecimal digits of the hash.
const HASH_CHARACTERS: usize = 20;
/// IAM shows what was made after a while; until then a profile that was made here exists, whatever a read says.
const STALE_READS: SignedDuration = SignedDuration::from_mins(5);
/// A profile that nothing uses is kept so long: somebody may be about to use it.
const UNUSED_KEPT: SignedDuration = SignedDuration::from_hours(1);

/// The profile that a class should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The class names one; who made it sees to it.
    Named(String),
    /// One that is made for its role.
    Managed(ManagedProfile),
    /// The class has neither a role nor a profile.
    Nothing,
}

/// A profile that belongs to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedProfile {
    pub profile: NewInstanceProfile,
    /// Without its path, as a profile has it.
    pub role: String,
}

/// What a class should have.
pub fn wanted(identity: &Identity, class: &EC2NodeClass) -> Wanted {
    if let Some(name) = &class.spec.instance_profile {
        return Wanted::Named(name.clone());
    }
    let Some(role) =
        class.spec.role.as_deref().and_then(|role| role.rsplit('/').next()).filter(|role| !role.is_empty())
    else {
        return Wanted::Nothing;
    };
    let class_name = class.metadata.name.as_deref().unwrap_or_default();
    let mut tags: Tags = class.spec.tags.clone();
    tags.extend([
        (owner_key(&identity.cluster), "owned".to_owned()),
        (keys::CLUSTER_NAME_TAG.to_owned(), identity.cluster.clone()),
        (keys::EC2_NODE_CLASS.to_owned(), class_name.to_owned()),
        (keys::REGION.to_owned(), identity.region.clone()),
        (keys::INSTALLATION.to_owned(), identity.installation.clone()),
    ]);
    let profile = NewInstanceProfile {
        name: name(identity, class_name, role),
        path: format!("{}{class_name}/", path_prefix(identity)),
        tags,
    };
    Wanted::Managed(ManagedProfile { profile, role: role.to_owned() })
}

/// Under which all profiles of a cluster are.
pub fn path_prefix(identity: &Identity) -> String {
    format!("/cutlist/{}/{}/", identity.region, identity.cluster)
}

/// IAM is one for all regions, so the region is part of it.
fn name(identity: &Identity, class: &str, role: &str) -> String {
    let mut hash = Sha256::new();
    for part in [&identity.region, &identity.cluster, class, role] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let digits = hexadecimal(hash.finalize());
    let cluster: String = identity.cluster.chars().take(CLUSTER_CHARACTERS).collect();
    format!("{cluster}_{}", digits.chars().take(HASH_CHARACTERS).collect::<String>())
}

/// What is remembered of a profile between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// When it was made here.
    pub at: Option<Timestamp>,
}

/// Sees to it that the profile exists and has its role: at most four calls, each of which may be repeated.
/// Errors are those of IAM; a profile under this name that is not ours is one, too.
pub async fn ensure(
    api: &impl Ec2Api,
    wanted: &ManagedProfile,
    identity: &Identity,
    made: &mut Made,
    now: Timestamp,
) -> Result<(), ApiError> {
    let name = wanted.profile.name.as_str();
    match api.get_instance_profile(name).await {
        Ok(found) => return use_found(api, wanted, identity, &found).await,
        Err(error) if error.class != FailureClass::NotFound => return Err(error),
        Err(_) => {}
    }
    let was_made_lately = made.at.is_some_and(|at| now.duration_since(at) < STALE_READS && !is_to_come(at, now));
    if !was_made_lately {
        match api.create_instance_profile(&wanted.profile).await {
            Ok(_) => made.at = Some(now),
            // Somebody made it, and the read was stale.
            Err(error) if error.class == FailureClass::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    add_role(api, wanted).await
}

async fn use_found(
    api: &impl Ec2Api,
    wanted: &ManagedProfile,
    identity: &Identity,
    found: &InstanceProfile,
) -> Result<(), ApiError> {
    if found.roles.contains(&wanted.role) {
        return Ok(());
    }
    if found.tags.get(&owner_key(&identity.cluster)).map(String::as_str) != Some("owned") {
        let text = format!(
            "instance profile {} has no tag {}=owned: it belongs to somebody else",
            found.name,
            owner_key(&identity.cluster)
        );
        return Err(ApiError {
            action: Action::AddRoleToInstanceProfile,
            class: FailureClass::Conflict,
            code: "NotOurs".to_owned(),
            message: text,
        });
    }
    for role in &found.roles {
        match api.remove_role_from_instance_profile(&found.name, role).await {
            Err(error) if error.class != FailureClass::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    add_role(api, wanted).await
}

/// A profile takes one role. Where it has one already, a read that showed none was stale, and the next one says which it is.
async fn add_role(api: &impl Ec2Api, wanted: &ManagedProfile) -> Result<(), ApiError> {
    match api.add_role_to_instance_profile(&wanted.profile.name, &wanted.role).await {
        Err(error) if error.class != FailureClass::Quota => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Names of listed profiles of this cluster that nothing uses. `in_use`: those of classes, and those that claims name.
pub fn unused(listed: &[InstanceProfile], in_use: &BTreeSet<String>, now: Timestamp) -> Vec<String> {
    let is_old =
        |profile: &&InstanceProfile| profile.created_at.is_some_and(|at| now.duration_since(at) >= UNUSED_KEPT);
    let unused = listed.iter().filter(|profile| !in_use.contains(&profile.name)).filter(is_old);
    unused.map(|profile| profile.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cluster: "demo".to_owned(),
            region: "us-east-1".to_owned(),
            installation: "one".to_owned(),
            kubernetes_version: None,
        }
    }

    fn class(name: &str, role: &str) -> EC2NodeClass {
        let value = serde_json::json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": { "name": name }, "spec": { "role": role, "tags": { "team": "shop" },
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] } });
        serde_json::from_value(value).unwrap()
    }

    fn managed(identity: &Identity, class: &EC2NodeClass) -> ManagedProfile {
        match wanted(identity, class) {
            Wanted::Managed(managed) => managed,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_class_and_its_role_have_one_name() {
        let one = managed(&identity(), &class("default", "nodes"));
        assert_eq!(one, managed(&identity(), &class("default", "nodes")));
        assert!(one.profile.name.starts_with("demo_") && one.profile.name.len() == 25, "{}", one.profile.name);
        assert_eq!(one.profile.path, "/cutlist/us-east-1/demo/default/");
        assert_eq!(one.profile.tags["kubernetes.io/cluster/demo"], "owned");
        assert_eq!(one.profile.tags["team"], "shop");
        let elsewhere = Identity { region: "eu-west-1".to_owned(), ..identity() };
        let others = [
            managed(&identity(), &class("default", "others")),
            managed(&identity(), &class("other", "nodes")),
            managed(&elsewhere, &class("default", "nodes")),
        ];
        let names: BTreeSet<&str> = others.iter().chain([&one]).map(|it| it.profile.name.as_str()).collect();
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn a_role_with_a_path_is_its_last_part() {
        assert_eq!(managed(&identity(), &class("default", "teams/shop/nodes")).role, "nodes");
    }

    #[test]
    fn long_names_of_clusters_fit() {
        let long = Identity { cluster: "c".repeat(300), ..identity() };
        assert!(managed(&long, &class("default", "nodes")).profile.name.len() <= 128);
    }

    #[test]
    fn only_old_profiles_that_nothing_uses_go() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let profile = |name: &str, created: Option<i64>| InstanceProfile {
            name: name.to_owned(),
            path: String::new(),
            roles: Vec::new(),
            tags: Tags::new(),
            created_at: created.map(at),
        };
        let listed = [
            profile("used", Some(0)),
            profile("old", Some(0)),
            profile("young", Some(3_000)),
            profile("ageless", None),
        ];
        let in_use = BTreeSet::from(["used".to_owned()]);
        assert_eq!(unused(&listed, &in_use, at(3_600)), ["old"]);
    }
}
