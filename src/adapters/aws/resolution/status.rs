//! The `status` of an EC2NodeClass: what was found, and a condition for each part, with Karpenter's types and reasons.
//! Source: reference, section 1.3, and section 3 of the notes on EC2.
//!
//! What is not known leaves the status as it is: after a restart, with AWS out of reach, the class says what it said before, and by
//! `observedGeneration` for which generation.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::images::{ClassImages, ImagesError};
use super::known::LastAnswer;
use super::validation::Verdict;
use super::{Resolution, Unmatched, reservations};
use crate::api::ec2_node_class::{Ami, EC2NodeClass, EC2NodeClassStatus, SecurityGroup, Subnet};
use crate::core::catalog::node_class::{ANSWERED_EARLIER, SOME_AMIS_UNKNOWN, SOME_AMIS_UNKNOWN_ANSWERED_EARLIER};

pub const SUBNETS_READY: &str = "SubnetsReady";
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
pub const AMIS_READY: &str = "AMIsReady";
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";
pub const READY: &str = "Ready";

/// What each condition rests on, in the order of the status.
const DEPENDENCIES: [&str; 6] = [
    SUBNETS_READY,
    SECURITY_GROUPS_READY,
    AMIS_READY,
    INSTANCE_PROFILE_READY,
    PLACEMENT_GROUP_READY,
    CAPACITY_RESERVATIONS_READY,
];

/// What nobody has looked at yet; the words are Karpenter's.
const AWAITING: &str = "AwaitingReconciliation";

/// The API server takes so many.
const MESSAGE_CHARACTERS_MAX: usize = 32_768;

/// What is to be said of one part.
struct Said {
    status: &'static str,
    reason: String,
    message: String,
}

impl Said {
    /// Its reason is the type, as in Karpenter.
    fn is_true(type_: &str, message: String) -> Self {
        Self { status: "True", reason: type_.to_owned(), message }
    }

    fn is_false(reason: &str, message: String) -> Self {
        Self { status: "False", reason: reason.to_owned(), message }
    }
}

/// The status that the class should have by these facts. Equal facts give an equal status, so nothing is written while nothing changes.
pub fn status(class: &EC2NodeClass, facts: &Resolution, validation: &Verdict, now: Timestamp) -> EC2NodeClassStatus {
    let before = class.status.clone().unwrap_or_default();
    let mut written = Written { status: before, generation: class.metadata.generation, now };
    written.subnets(facts);
    written.security_groups(facts);
    written.images(facts);
    written.instance_profile(class, facts);
    written.placement_group(facts);
    written.reservations(facts);
    written.validation(validation);
    written.ready();
    written.status
}

struct Written {
    status: EC2NodeClassStatus,
    generation: Option<i64>,
    now: Timestamp,
}

impl Written {
    fn subnets(&mut self, facts: &Resolution) {
        if let Some(found) = facts.subnets.value() {
            self.status.subnets = found
                .iter()
                .map(|it| Subnet { id: it.id.clone(), zone: it.zone.clone(), zone_id: it.zone_id.clone() })
                .collect();
        }
        let said = found(SUBNETS_READY, "SubnetsNotFound", "subnetSelectorTerms", &facts.subnets, &facts.unmatched);
        self.say(SUBNETS_READY, said, &facts.subnets);
    }

    fn security_groups(&mut self, facts: &Resolution) {
        let groups = &facts.security_groups;
        if let Some(found) = groups.value() {
            let group = |it: &super::SecurityGroup| SecurityGroup { id: it.id.clone(), name: Some(it.name.clone()) };
            self.status.security_groups = found.iter().map(group).collect();
        }
        let field = "securityGroupSelectorTerms";
        let said = found(SECURITY_GROUPS_READY, "SecurityGroupsNotFound", field, groups, &facts.unmatched);
        self.say(SECURITY_GROUPS_READY, said, groups);
    }

    fn images(&mut self, facts: &Resolution) {
        let said = match &facts.images {
            Err(ImagesError::Alias(error)) => Some(Said::is_false("UnsupportedAlias", error.to_string())),
            Err(ImagesError::NoVersion) => None,
            Ok(images) => self.images_found(images),
        };
        let trouble = match &facts.images {
            Err(_) => facts.cluster.map(|_| ()),
            Ok(images) => {
                LastAnswer { answer: None, trouble: images.unknown.iter().find_map(|part| part.trouble.clone()) }
            }
        };
        self.say(AMIS_READY, said, &trouble);
    }

    /// Of a variant that is unknown the image stays that was known before. Where another part is unknown, which may hold the better image
    /// for any type, all of them stay.
    fn images_found(&mut self, images: &ClassImages) -> Option<Said> {
        let mut notes: Vec<String> = images.unmatched.clone();
        notes.extend(images.unknown.iter().map(|part| {
            let why = part.trouble.as_ref().map(|trouble| format!(": {}", trouble.error.text())).unwrap_or_default();
            format!("{} is unknown{why}", part.what)
        }));
        if let (Some(at), Some(trouble)) = (images.at, &images.trouble) {
            let at = super::known::whole_seconds(at);
            notes.push(format!("as of {at}; since then {}", trouble.error.text()));
        }
        let before = if self.is_said_now(AMIS_READY) { self.status.amis.as_slice() } else { &[] };
        let is_unsure = images.unknown.iter().any(|part| !part.is_variant);
        if !images.unknown.is_empty() && (images.images.is_empty() || (is_unsure && !before.is_empty())) {
            return None;
        }
        let mut found = images.images.clone();
        if !images.unknown.is_empty() {
            let is_new = |one: &&Ami| !found.iter().any(|it| it.requirements == one.requirements);
            let kept: Vec<Ami> = before.iter().filter(is_new).cloned().collect();
            found.extend(kept);
        }
        self.status.amis = found;
        let message = notes.join("; ");
        let is_earlier = images.at.is_some() && images.trouble.is_some();
        let reason = match (images.unknown.is_empty(), is_earlier) {
            (true, false) => AMIS_READY,
            (true, true) => ANSWERED_EARLIER,
            (false, false) => SOME_AMIS_UNKNOWN,
            (false, true) => SOME_AMIS_UNKNOWN_ANSWERED_EARLIER,
        };
        Some(match self.status.amis.is_empty() {
            true => Said::is_false("AMINotFound", message),
            false => Said { reason: reason.to_owned(), ..Said::is_true(AMIS_READY, message) },
        })
    }

    /// It has no reason for being false: while it can not be made it stays as it was, and its message says why.
    fn instance_profile(&mut self, class: &EC2NodeClass, facts: &Resolution) {
        let profile = &facts.instance_profile;
        let said = match profile.value() {
            Some(Some(name)) => {
                self.status.instance_profile = Some(name.clone());
                Some(Said::is_true(INSTANCE_PROFILE_READY, String::new()))
            }
            Some(None) | None => None,
        };
        let has_none = class.spec.role.is_none() && class.spec.instance_profile.is_none();
        if has_none {
            self.status.instance_profile = None;
        }
        self.say(INSTANCE_PROFILE_READY, said, profile);
    }

    fn placement_group(&mut self, facts: &Resolution) {
        let group = &facts.placement_group;
        let said = match group.value() {
            Some(Ok(_)) => Some(Said::is_true(PLACEMENT_GROUP_READY, String::new())),
            Some(Err(why)) => Some(Said::is_false("PlacementGroupNotFound", why.clone())),
            None if self.is_said_now(PLACEMENT_GROUP_READY) => None,
            None => group.trouble_text().map(|why| Said::is_false("PlacementGroupResolutionFailed", why)),
        };
        self.say(PLACEMENT_GROUP_READY, said, group);
    }

    fn reservations(&mut self, facts: &Resolution) {
        let found = &facts.reservations;
        let said = found.value().map(|found| {
            self.status.capacity_reservations = found.iter().map(|one| reservations::status(one, self.now)).collect();
            Said::is_true(CAPACITY_RESERVATIONS_READY, String::new())
        });
        self.say(CAPACITY_RESERVATIONS_READY, said, found);
    }

    fn validation(&mut self, verdict: &Verdict) {
        // What it rests on comes first.
        let states: Vec<(&str, &str)> = DEPENDENCIES.iter().map(|type_| (*type_, self.state(type_))).collect();
        let listed = |state: &str| -> Vec<&str> {
            states.iter().filter(|(_, found)| *found == state).map(|(type_, _)| *type_).collect()
        };
        let (failed, unknown) = (listed("False"), listed("Unknown"));
        let not_ready = |types: &[&str]| format!("not ready: {}", types.join(", "));
        let said = match verdict {
            Verdict::Failed { reason, message } if reason.comes_before_dependencies() => {
                Said::is_false(reason.name(), message.clone())
            }
            _ if !failed.is_empty() => Said::is_false("DependenciesNotReady", not_ready(&failed)),
            _ if !unknown.is_empty() => {
                Said { status: "Unknown", reason: "DependenciesNotReady".to_owned(), message: not_ready(&unknown) }
            }
            Verdict::Failed { reason, message } => Said::is_false(reason.name(), message.clone()),
            Verdict::Passed => Said::is_true(VALIDATION_SUCCEEDED, String::new()),
            // A dry run that was throttled says nothing.
            Verdict::Unknown { why } => {
                if self.is_said_now(VALIDATION_SUCCEEDED) {
                    return;
                }
                Said { status: "Unknown", reason: AWAITING.to_owned(), message: why.clone() }
            }
        };
        self.say(VALIDATION_SUCCEEDED, Some(said), &LastAnswer::<()>::default());
    }

    /// All of them; the words are those of Karpenter's operator library.
    fn ready(&mut self) {
        let types = DEPENDENCIES.iter().chain([&VALIDATION_SUCCEEDED]);
        let states: Vec<(&str, &str)> = types.map(|type_| (*type_, self.state(type_))).collect();
        let unmet: Vec<String> = states
            .iter()
            .filter(|(_, state)| *state != "True")
            .map(|(type_, state)| format!("{type_}={state}"))
            .collect();
        let is_false = states.iter().any(|(_, state)| *state == "False");
        let said = match (unmet.is_empty(), is_false) {
            (true, _) => Said::is_true(READY, String::new()),
            (false, true) => Said::is_false("UnhealthyDependents", unmet.join(", ")),
            (false, false) => {
                Said { status: "Unknown", reason: "ReconcilingDependents".to_owned(), message: unmet.join(", ") }
            }
        };
        self.say(READY, Some(said), &LastAnswer::<()>::default());
    }

    /// The state of a condition for this generation; what was seen of an earlier one is not.
    fn state(&self, type_: &str) -> &str {
        let found = self.status.conditions.iter().find(|condition| condition.type_ == type_);
        let is_now = |condition: &&Condition| condition.observed_generation >= self.generation;
        found.filter(is_now).map_or("Unknown", |condition| condition.status.as_str())
    }

    /// Whether a condition is true or false for this generation.
    fn is_said_now(&self, type_: &str) -> bool {
        self.state(type_) != "Unknown"
    }

    /// Whether a condition was true or false before.
    fn is_said(&self, type_: &str) -> bool {
        self.status.conditions.iter().any(|condition| condition.type_ == type_ && condition.status != "Unknown")
    }

    /// Writes a condition, with why there is no newer answer. `None`: it is not known, and what was said before stays, for the generation that it was for.
    fn say<T>(&mut self, type_: &str, said: Option<Said>, known: &LastAnswer<T>) {
        let position = self.status.conditions.iter().position(|condition| condition.type_ == type_);
        let said = match said {
            Some(mut said) => {
                if let Some(trouble) = known.trouble_text().filter(|_| known.answer.is_some()) {
                    if said.status == "True" {
                        ANSWERED_EARLIER.clone_into(&mut said.reason);
                    }
                    said.message = match said.message.as_str() {
                        "" => trouble,
                        message => format!("{message}; {trouble}"),
                    };
                }
                said
            }
            // What was never known says why, as it stands now.
            None if self.is_said(type_) => return,
            None => Said {
                status: "Unknown",
                reason: AWAITING.to_owned(),
                message: known.trouble_text().unwrap_or_else(|| "object is awaiting reconciliation".to_owned()),
            },
        };
        let since = position.and_then(|index| self.status.conditions.get(index)).filter(|it| it.status == said.status);
        let condition = Condition {
            type_: type_.to_owned(),
            status: said.status.to_owned(),
            reason: said.reason,
            message: said.message.chars().take(MESSAGE_CHARACTERS_MAX).collect(),
            observed_generation: self.generation,
            last_transition_time: since.map_or(Time(self.now), |condition| condition.last_transition_time.clone()),
        };
        match position.and_then(|index| self.status.conditions.get_mut(index)) {
            Some(existing) => *existing = condition,
            None => self.status.conditions.push(condition),
        }
    }
}

/// Whether terms found anything; `None` where that is not known.
fn found<T>(
    type_: &str,
    reason: &str,
    field: &str,
    found: &LastAnswer<Vec<T>>,
    unmatched: &[Unmatched],
) -> Option<Said> {
    let of_field: Vec<String> = unmatched
        .iter()
        .filter(|one| one.field.starts_with(&format!("spec.{field}")))
        .map(|one| format!("{}: {}", one.field, one.why))
        .collect();
    let message = of_field.join("; ");
    Some(match found.value()?.is_empty() {
        true => Said::is_false(reason, message),
        false => Said::is_true(type_, message),
    })
}
