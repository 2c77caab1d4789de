//! What a cloud says of classes, as a file has it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::cloud_facts::{CloudFacts, FORMAT_VERSION, KIND};
use crate::api::ec2_node_class::{EC2NodeClass, EC2NodeClassSpec};
use crate::core::snapshot::Snapshot;
use crate::ports::{ClassCondition, Cloud, PortError};

/// Asks about each class. What could not be found out is in the answer: as a condition that is `Unknown`, and in its list.
pub async fn pull<E: Cloud>(
    cloud: &E,
    classes: &[EC2NodeClass],
    region: &str,
    now: Timestamp,
) -> Result<CloudFacts, PortError> {
    // What an answer leads to, such as the images behind parameters, is asked for in a second look.
    for class in classes {
        cloud.describe(class).await?;
    }
    let mut facts = CloudFacts {
        kind: KIND.to_owned(),
        version: FORMAT_VERSION,
        taken_at: now.to_string(),
        region: region.to_owned(),
        node_classes: Vec::new(),
        free_addresses: Default::default(),
        images_created: Default::default(),
        vcpu_quotas: cloud.vcpu_quotas().await,
        not_known: Vec::new(),
        denied: Vec::new(),
    };
    for class in classes {
        let described = cloud.describe(class).await?;
        let mut status = described.found.or_else(|| class.status.clone()).unwrap_or_default();
        status.conditions = described.conditions.iter().map(|it| condition(it, now)).collect();
        facts.node_classes.push(EC2NodeClass { status: Some(status), ..class.clone() });
        facts.free_addresses.extend(described.free_addresses);
        facts.images_created.extend(described.images_created.into_iter().map(|(id, at)| (id, at.to_string())));
    }
    facts.node_classes.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    facts.not_known = cloud.notes().await.into_iter().map(|note| note.text).collect();
    facts.denied = cloud.denied().await;
    Ok(facts)
}

fn condition(said: &ClassCondition, now: Timestamp) -> Condition {
    let status = match said.status {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    Condition {
        type_: said.type_.clone(),
        status: status.to_owned(),
        reason: said.reason.clone(),
        message: said.message.clone(),
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

/// Whether EC2 was asked the same for both. What else a class has, such as its role, is not in every snapshot.
fn selects_the_same(one: &EC2NodeClassSpec, other: &EC2NodeClassSpec) -> bool {
    one.ami_family == other.ami_family
        && one.ami_selector_terms == other.ami_selector_terms
        && one.subnet_selector_terms == other.subnet_selector_terms
        && one.security_group_selector_terms == other.security_group_selector_terms
        && one.capacity_reservation_selector_terms == other.capacity_reservation_selector_terms
}

/// The cluster with what a file of facts says of its classes: of each that selects what EC2 was asked about, the status; and classes that
/// the cluster does not have. Beside it the classes of the file that are not as they are defined now.
pub fn overlaid(snapshot: &Snapshot, facts: &CloudFacts) -> (Snapshot, Vec<String>) {
    let mut overlaid = snapshot.clone();
    let others = overlay(&mut overlaid, &facts.node_classes);
    (overlaid, others)
}

/// The same with classes that have a status.
pub fn overlay(snapshot: &mut Snapshot, classes: &[EC2NodeClass]) -> Vec<String> {
    let mut others = Vec::new();
    for asked in classes {
        let mut applied = snapshot.node_classes.iter_mut().filter(|it| it.metadata.name == asked.metadata.name);
        match applied.next() {
            Some(applied) if selects_the_same(&applied.spec, &asked.spec) => {
                applied.status = asked.status.clone();
            }
            Some(_) => others.push(asked.metadata.name.clone().unwrap_or_default()),
            None => {
                drop(applied);
                snapshot.node_classes.push(asked.clone());
            }
        }
    }
    others
}
