//! Drift that only EC2 can show: an instance against what its class selects now, in the reference's order: image, security groups, subnet,
//! reservation. What the definitions alone show (hashes of pool and class, requirements) is compared in `core/disrupt/drift`.
//!
//! What is not known is no drift, and a selection that is empty is not one to compare with: the class is not ready then.

use std::collections::{BTreeMap, BTreeSet};

use super::api::instances::InstanceAnswer;
use super::instances::RESERVATIONS_ONLY;
use super::resolution::Resolution;
use super::resolution::known::Known;
use crate::core::catalog::InstanceType;
use crate::core::catalog::node_class::image_for;

/// What is compared, with the reference's reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    Image,
    SecurityGroups,
    Subnet,
    CapacityReservation,
}

impl Compared {
    /// As the condition `Drifted` says it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Image => "AMIDrift",
            Self::SecurityGroups => "SecurityGroupDrift",
            Self::Subnet => "SubnetDrift",
            Self::CapacityReservation => "CapacityReservationDrift",
        }
    }
}

/// What came of one comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    AsSelected,
    /// How it differs, in a sentence.
    Drifts(String),
    /// Why nobody can say.
    Unknown(String),
}

/// An instance, and what it is compared by.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub instance: &'a InstanceAnswer,
    /// As the class makes it; `None` where the catalog has no such type.
    pub instance_type: Option<&'a InstanceType>,
    /// Of the node.
    pub labels: &'a BTreeMap<String, String>,
}

/// What was asked for in the settings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Strictness {
    /// Whether groups that somebody attached beside the class's are drift, as in the reference.
    pub extra_security_groups_drift: bool,
}

/// All comparisons of an instance, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveDrift {
    pub verdicts: Vec<(Compared, Verdict)>,
    /// Security groups that others attached.
    pub extra_groups: Vec<String>,
}

impl LiveDrift {
    /// The first drift: what it is, and how. As a NodeClaim's condition says it, `AMIDrift: ...`.
    pub fn first(&self) -> Option<(Compared, &str)> {
        self.verdicts.iter().find_map(|(compared, verdict)| match verdict {
            Verdict::Drifts(text) => Some((*compared, text.as_str())),
            Verdict::AsSelected | Verdict::Unknown(_) => None,
        })
    }

    /// What could not be compared, and why.
    pub fn unknown(&self) -> impl Iterator<Item = (Compared, &str)> {
        self.verdicts.iter().filter_map(|(compared, verdict)| match verdict {
            Verdict::Unknown(why) => Some((*compared, why.as_str())),
            Verdict::AsSelected | Verdict::Drifts(_) => None,
        })
    }
}

/// Compares an instance with what its class selects.
pub fn compare(subject: Subject<'_>, facts: &Resolution, strictness: Strictness) -> LiveDrift {
    let (groups, extra_groups) = security_groups(subject.instance, facts, strictness);
    let verdicts = vec![
        (Compared::Image, image(subject, facts)),
        (Compared::SecurityGroups, groups),
        (Compared::Subnet, subnet(subject.instance, facts)),
        (Compared::CapacityReservation, reservation(subject.instance, facts)),
    ];
    LiveDrift { verdicts, extra_groups }
}

fn image(subject: Subject<'_>, facts: &Resolution) -> Verdict {
    let (class, runs) = (&facts.class, &subject.instance.image_id);
    let images = match &facts.images {
        Ok(images) => images,
        Err(error) => return Verdict::Unknown(error.to_string()),
    };
    if let Some(part) = images.unknown.first() {
        let why = part.trouble.as_ref().map(|trouble| format!(": {}", trouble.error.text())).unwrap_or_default();
        return Verdict::Unknown(format!("{} is unknown{why}", part.what));
    }
    if images.images.is_empty() {
        return Verdict::Unknown(format!("EC2NodeClass {class} selects no image"));
    }
    let Some(instance_type) = subject.instance_type else {
        return Verdict::Unknown(format!("the catalog has no instance type {}", subject.instance.instance_type));
    };
    match image_for(instance_type, subject.labels, &images.images) {
        Some(selected) if selected.id == *runs => Verdict::AsSelected,
        Some(selected) => {
            Verdict::Drifts(format!("EC2NodeClass {class} selects {} now, the node runs {runs}", named(selected)))
        }
        None => Verdict::Drifts(format!(
            "EC2NodeClass {class} selects no image for this instance type, the node runs {runs}"
        )),
    }
}

fn named(image: &crate::api::ec2_node_class::Ami) -> String {
    image.name.as_ref().map_or_else(|| image.id.clone(), |name| format!("{} ({name})", image.id))
}

/// What is selected; an error in words where that is not known, or nothing is.
fn selected<'f, T>(known: &'f Known<Vec<T>>, class: &str, what: &str) -> Result<&'f [T], String> {
    match known.value() {
        Some(found) if !found.is_empty() => Ok(found),
        Some(_) => Err(format!("EC2NodeClass {class} selects no {what}")),
        None => Err(known.trouble_text().unwrap_or_else(|| format!("the {what}s were not asked for yet"))),
    }
}

fn security_groups(instance: &InstanceAnswer, facts: &Resolution, strictness: Strictness) -> (Verdict, Vec<String>) {
    let groups = match selected(&facts.security_groups, &facts.class, "security group") {
        Ok(groups) => groups,
        Err(why) => return (Verdict::Unknown(why), Vec::new()),
    };
    // An instance that ends has no interface any more.
    if instance.security_groups.is_empty() {
        return (Verdict::Unknown("EC2 does not say its security groups".to_owned()), Vec::new());
    }
    let wanted: BTreeSet<&str> = groups.iter().map(|group| group.id.as_str()).collect();
    let attached: BTreeSet<&str> = instance.security_groups.iter().map(|group| group.id.as_str()).collect();
    let extra = instance.security_groups.iter().filter(|group| !wanted.contains(group.id.as_str()));
    let mut extra: Vec<String> = extra
        .map(|group| group.name.as_ref().map_or_else(|| group.id.clone(), |name| format!("{} ({name})", group.id)))
        .collect();
    extra.sort_unstable();
    let lacking: Vec<&str> = wanted.difference(&attached).copied().collect();
    let class = &facts.class;
    let verdict = if !lacking.is_empty() {
        Verdict::Drifts(format!("EC2NodeClass {class} selects {}, which the node lacks", lacking.join(", ")))
    } else if strictness.extra_security_groups_drift && !extra.is_empty() {
        Verdict::Drifts(format!("the node has {}, which EC2NodeClass {class} does not select", extra.join(", ")))
    } else {
        Verdict::AsSelected
    };
    (verdict, extra)
}

fn subnet(instance: &InstanceAnswer, facts: &Resolution) -> Verdict {
    let subnets = match selected(&facts.subnets, &facts.class, "subnet") {
        Ok(subnets) => subnets,
        Err(why) => return Verdict::Unknown(why),
    };
    let Some(id) = &instance.subnet_id else {
        return Verdict::Unknown("EC2 does not say its subnet".to_owned());
    };
    if subnets.iter().any(|subnet| subnet.id == *id) {
        return Verdict::AsSelected;
    }
    Verdict::Drifts(format!("EC2NodeClass {} no longer selects {id}, which the node is in", facts.class))
}

/// Only instances that were launched into a reservation on purpose can lose it.
fn reservation(instance: &InstanceAnswer, facts: &Resolution) -> Verdict {
    let on_purpose = instance.reservation_preference.as_deref() == Some(RESERVATIONS_ONLY);
    let Some(id) = instance.reservation_id.as_ref().filter(|_| on_purpose) else { return Verdict::AsSelected };
    let Some(found) = facts.reservations.value() else {
        let why = facts.reservations.trouble_text();
        return Verdict::Unknown(why.unwrap_or_else(|| "the reservations were not asked for yet".to_owned()));
    };
    if found.iter().any(|one| one.id == *id) {
        return Verdict::AsSelected;
    }
    Verdict::Drifts(format!("EC2NodeClass {} no longer selects {id}, which the node was launched into", facts.class))
}
