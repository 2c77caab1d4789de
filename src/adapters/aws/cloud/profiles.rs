//! Instance profiles that nothing uses any more: of roles that a class had before, and of classes that are gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::account::InstanceProfile;
use crate::adapters::aws::api::instances::InstanceAnswer;
use crate::adapters::aws::api::{Action, ApiError, Ec2Api, pages};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::resolution::cluster::Identity;
use crate::adapters::aws::resolution::instance_profile::{path_prefix, unused};
use crate::api::keys;
use crate::ports::not_to_come;

/// As the reference.
const SWEPT_EVERY: SignedDuration = SignedDuration::from_mins(30);
/// So long after its start this process has been asked about every class.
const CLASSES_SEEN_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// Profiles that are deleted at once: others have use for the calls.
const SWEPT_AT_ONCE: usize = 5;

/// When it was looked for them last.
#[derive(Debug)]
pub struct Profiles {
    swept_at: Mutex<Timestamp>,
}

impl Profiles {
    pub fn new(started_at: Timestamp) -> Self {
        let first = started_at.saturating_add(CLASSES_SEEN_AFTER - SWEPT_EVERY).unwrap_or(started_at);
        Self { swept_at: Mutex::new(first) }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let mut swept_at = self.swept_at.lock().unwrap_or_else(PoisonError::into_inner);
        *swept_at = not_to_come(*swept_at, now);
        let is_due = now.duration_since(*swept_at) >= SWEPT_EVERY;
        if is_due {
            *swept_at = now;
        }
        is_due
    }

    /// Deletes what nothing uses, if it is time for that. What can not be deleted is tried again the next time. `wanted`: by class that there
    /// is, the name of its profile. `instances`: all of the cluster that have not ended.
    pub async fn sweep(
        &self,
        api: &impl Ec2Api,
        identity: &Identity,
        wanted: &BTreeMap<String, String>,
        instances: &[InstanceAnswer],
        now: Timestamp,
    ) {
        if !self.is_due(now) {
            return;
        }
        let prefix = path_prefix(identity);
        let ask = async |page: Option<String>| api.list_instance_profiles(&prefix, page.as_deref()).await;
        let Ok(listed) = pages::all(Action::ListInstanceProfiles, ask).await else { return };
        let in_use = in_use(&listed, &prefix, wanted, instances);
        for name in unused(&listed, &in_use, now).iter().take(SWEPT_AT_ONCE) {
            if let Err(error) = delete(api, identity, name).await {
                tracing::warn!(profile = name, error = error.text(), "an instance profile that nothing uses stays");
                return;
            }
        }
    }
}

/// The class that a profile was made for stands in its path.
fn class_of<'p>(profile: &'p InstanceProfile, prefix: &str) -> Option<&'p str> {
    profile.path.strip_prefix(prefix).map(|class| class.trim_end_matches('/'))
}

/// Those that classes want, and those with which instances may run: the older ones of a class, as long as it has an instance from before its
/// present one was made. An instance whose profile is deleted has no permissions any more.
fn in_use(
    listed: &[InstanceProfile],
    prefix: &str,
    wanted: &BTreeMap<String, String>,
    instances: &[InstanceAnswer],
) -> BTreeSet<String> {
    let mut oldest: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for instance in instances {
        if let Some(class) = instance.tags.get(keys::EC2_NODE_CLASS) {
            let first = oldest.entry(class).or_insert(instance.launched_at);
            *first = instance.launched_at.min(*first);
        }
    }
    let made_at = |class: &str| {
        let name = wanted.get(class)?;
        listed.iter().find(|profile| profile.name == *name)?.created_at
    };
    let may_run = |profile: &&InstanceProfile| {
        // One whose path says no class is of nobody that is known here.
        let Some(class) = class_of(profile, prefix) else { return true };
        let since = oldest.get(class);
        since.is_some_and(|since| made_at(class).is_none_or(|made_at| *since < made_at))
    };
    let of_instances = listed.iter().filter(may_run).map(|profile| profile.name.clone());
    wanted.values().cloned().chain(of_instances).collect()
}

/// Another installation may have made it for a class of the same name.
async fn delete(api: &impl Ec2Api, identity: &Identity, name: &str) -> Result<(), ApiError> {
    let profile = match api.get_instance_profile(name).await {
        Err(error) if error.class == FailureClass::NotFound => return Ok(()),
        found => found?,
    };
    if profile.tags.get(keys::INSTALLATION) != Some(&identity.installation) {
        return Ok(());
    }
    for role in &profile.roles {
        match api.remove_role_from_instance_profile(name, role).await {
            Err(error) if error.class != FailureClass::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    match api.delete_instance_profile(name).await {
        Err(error) if error.class != FailureClass::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_sweeps_neither_at_once_nor_much_later() {
        let at = |minute: i64| Timestamp::from_second(1_790_000_000 + minute * 60).unwrap();
        let profiles = Profiles::new(at(600));
        assert!(!profiles.is_due(at(614)) && !profiles.is_due(at(0)));
        assert!(!profiles.is_due(at(29)) && profiles.is_due(at(30)));
        assert!(!profiles.is_due(at(59)) && profiles.is_due(at(60)));
    }
}
