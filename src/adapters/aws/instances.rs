//! Instances as EC2 shows them: found by the tags of the cluster, all pages of them; read as [`ports::Instance`]; and, of
//! those that ended before they joined, why. Which claim has which is [`super::fleet::assign()`]'s part.

use std::collections::BTreeSet;

use super::api::instances::{AttachedGroup, InstanceAnswer, InstanceState, StateReason};
use super::api::{Action, ApiError, Ec2Api, Filter, pages};
use super::resolution::cluster::Identity;
use crate::api::ec2_node_class::SecurityGroup;
use crate::api::keys;
use crate::core::plan::EndCause;
use crate::ports;

/// The preference of an instance that was launched into a reservation on purpose.
pub const RESERVATIONS_ONLY: &str = "capacity-reservations-only";

/// EC2 takes so many values in one filter.
const FILTER_VALUES_MAX: usize = 200;

/// What is listed: also what has stopped, which still costs its volumes, and what is about to end.
const STATES: [&str; 5] = ["pending", "running", "shutting-down", "stopping", "stopped"];
/// And what has ended, where it is asked why.
const ENDED: &str = "terminated";

/// All instances of the cluster that have not ended.
pub async fn list(api: &impl Ec2Api, identity: &Identity) -> Result<Vec<InstanceAnswer>, ApiError> {
    let filters = [
        Filter::new("tag-key", [keys::NODE_POOL]),
        Filter::new("tag-key", [keys::EC2_NODE_CLASS]),
        Filter::new(format!("tag:{}", keys::CLUSTER_NAME_TAG), [&identity.cluster]),
        Filter::new("instance-state-name", STATES),
    ];
    described(api, &filters).await
}

/// All instances of the account in the region that run or start, whoever launched them.
pub async fn of_account(api: &impl Ec2Api) -> Result<Vec<InstanceAnswer>, ApiError> {
    described(api, &[Filter::new("instance-state-name", ["pending", "running"])]).await
}

/// The instances of these launches, also those that have ended since: they still are the ones that were launched.
pub async fn of_launches(api: &impl Ec2Api, launches: &BTreeSet<String>) -> Result<Vec<InstanceAnswer>, ApiError> {
    let filter = |values: &[&String]| Filter::new(format!("tag:{}", keys::LAUNCH), values.iter().copied());
    in_parts(api, launches, filter).await
}

/// Instances by their ids. One that EC2 does not know is not among them: as a filter, an id is no error.
pub async fn by_ids(api: &impl Ec2Api, ids: &BTreeSet<String>) -> Result<Vec<InstanceAnswer>, ApiError> {
    in_parts(api, ids, |values| Filter::new("instance-id", values.iter().copied())).await
}

async fn in_parts(
    api: &impl Ec2Api,
    values: &BTreeSet<String>,
    filter: impl Fn(&[&String]) -> Filter,
) -> Result<Vec<InstanceAnswer>, ApiError> {
    let values: Vec<&String> = values.iter().collect();
    let mut all = Vec::new();
    for part in values.chunks(FILTER_VALUES_MAX) {
        let states = Filter::new("instance-state-name", STATES.into_iter().chain([ENDED]));
        all.extend(described(api, &[filter(part), states]).await?);
    }
    Ok(all)
}

/// A page may come twice while instances come and go.
async fn described(api: &impl Ec2Api, filters: &[Filter]) -> Result<Vec<InstanceAnswer>, ApiError> {
    let ask = async |page: Option<String>| api.describe_instances(filters, page.as_deref()).await;
    let mut instances = pages::all(Action::DescribeInstances, ask).await?;
    instances.sort_by(|one, other| one.id.cmp(&other.id));
    instances.dedup_by(|one, other| one.id == other.id);
    Ok(instances)
}

/// As Kubernetes names an instance.
pub fn provider_id(zone: &str, id: &str) -> String {
    format!("aws:///{zone}/{id}")
}

/// The id in a provider ID, `aws:///us-east-1a/i-0123`.
pub fn instance_id(provider_id: &str) -> Option<&str> {
    let id = provider_id.strip_prefix("aws:///")?.rsplit('/').next()?;
    id.starts_with("i-").then_some(id)
}

/// How an instance is paid. EC2 says it in one of two places, and of a reservation in a third.
pub fn capacity_type(instance: &InstanceAnswer) -> &'static str {
    let is_spot = instance.lifecycle.as_deref() == Some("spot") || instance.spot_request_id.is_some();
    let is_reserved =
        instance.reservation_id.is_some() && instance.reservation_preference.as_deref() == Some(RESERVATIONS_ONLY);
    match (is_spot, is_reserved) {
        (true, _) => keys::SPOT,
        (false, true) => keys::RESERVED,
        (false, false) => keys::ON_DEMAND,
    }
}

/// As the controller knows it.
pub fn to_port(instance: &InstanceAnswer) -> ports::Instance {
    let tag = |key: &str| instance.tags.get(key).cloned().unwrap_or_default();
    let group = |it: &AttachedGroup| SecurityGroup { id: it.id.clone(), name: it.name.clone() };
    let is_on_purpose = instance.reservation_preference.as_deref() == Some(RESERVATIONS_ONLY);
    ports::Instance {
        provider_id: provider_id(&instance.zone, &instance.id),
        launch_id: tag(keys::LAUNCH),
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        capacity_type: capacity_type(instance).to_owned(),
        image_id: instance.image_id.clone(),
        subnet_id: instance.subnet_id.clone(),
        security_groups: instance.security_groups.iter().map(group).collect(),
        reservation_id: instance.reservation_id.clone().filter(|_| is_on_purpose),
        launched_at: instance.launched_at,
        node_claim: tag(keys::NODE_CLAIM_TAG),
        node_pool: tag(keys::NODE_POOL),
        node_class: tag(keys::EC2_NODE_CLASS),
        installation: tag(keys::INSTALLATION),
    }
}

/// The same of one that has ended; `None` while it runs.
pub fn end_to_port(instance: &InstanceAnswer) -> Option<ports::InstanceEnd> {
    let Ended { cause, code, text } = ended(instance)?;
    Some(ports::InstanceEnd { provider_id: provider_id(&instance.zone, &instance.id), cause, code, text })
}

/// Why an instance ended, as far as that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub cause: EndCause,
    /// EC2's own word; empty where it gave none.
    pub code: String,
    /// What EC2 said, its word among it, and what to do.
    pub text: String,
}

/// Why an instance is ending or has ended; `None` while it runs. Codes:
/// `https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html`.
pub fn ended(instance: &InstanceAnswer) -> Option<Ended> {
    match instance.state {
        InstanceState::Pending | InstanceState::Running => return None,
        InstanceState::ShuttingDown | InstanceState::Terminated | InstanceState::Stopping | InstanceState::Stopped => {}
    }
    let nothing = StateReason { code: String::new(), message: String::new() };
    let reason = instance.state_reason.as_ref().unwrap_or(&nothing);
    let (cause, what) = cause(reason);
    let message = reason.message.strip_prefix(&format!("{}: ", reason.code)).unwrap_or(&reason.message);
    let said = match (reason.code.is_empty(), message.is_empty()) {
        (true, true) => "EC2 does not say why".to_owned(),
        (false, true) => reason.code.clone(),
        (true, false) => message.to_owned(),
        (false, false) => format!("{}: {message}", reason.code),
    };
    let text = if what.is_empty() { said } else { format!("{what} ({said})") };
    Some(Ended { cause, code: reason.code.clone(), text })
}

fn cause(reason: &StateReason) -> (EndCause, &'static str) {
    let message = reason.message.to_lowercase();
    match reason.code.as_str() {
        code if code.starts_with("Client.InvalidKMSKey") => (
            EndCause::Encryption,
            "the key of an encrypted volume can not be used: see that it is enabled, and that its policy lets the caller and the \
             service-linked role of EC2 use it (kms:CreateGrant, kms:Decrypt, kms:GenerateDataKeyWithoutPlaintext)",
        ),
        // EC2's word for a volume that did not attach, which mostly is its key.
        "Client.InternalError" => (
            EndCause::Encryption,
            "EC2 could not attach a volume, which mostly means that the policy of its key does not let the service-linked role of EC2 \
             use it (kms:CreateGrant, kms:Decrypt, kms:GenerateDataKeyWithoutPlaintext)",
        ),
        "Client.VolumeLimitExceeded" => {
            (EndCause::VolumeQuota, "the account may have no more volumes: raise the quota of the volume type")
        }
        code if code.starts_with("Client.InvalidSnapshot") => {
            (EndCause::Snapshot, "the snapshot of a volume does not exist, or is not for this account")
        }
        _ if message.contains("address") && (message.contains("insufficient") || message.contains("not enough")) => {
            (EndCause::Addresses, "no address was left in its subnet")
        }
        "Server.InsufficientInstanceCapacity" => (EndCause::Capacity, "EC2 had none left when it was to start"),
        "Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown" => {
            (EndCause::Interrupted, "EC2 took the spot instance back")
        }
        "Server.InternalError" => (
            EndCause::Unknown,
            "EC2 failed while it was to start; where this goes on, see that the keys of its volumes can be used",
        ),
        "Client.UserInitiatedShutdown" | "Client.UserInitiatedHibernate" => (EndCause::Stopped, "somebody ended it"),
        "Client.InstanceInitiatedShutdown" => (EndCause::Stopped, "it shut itself down"),
        "Server.ScheduledStop" => (EndCause::Stopped, "EC2 stopped it on schedule"),
        _ => (EndCause::Unknown, ""),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn instance(id: &str, launch: &str) -> InstanceAnswer {
        let value = json!({ "id": id, "state": "running", "instanceType": "m5.large", "zone": "us-east-1a", "imageId": "ami-1",
            "launchedAt": at(0).to_string(), "tags": { "cutlist.dev/launch": launch, "karpenter.sh/nodepool": "general" } });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_way_of_paying_is_said_in_one_of_three_places() {
        let with = |change: &dyn Fn(&mut InstanceAnswer)| {
            let mut instance = instance("i-1", "l");
            change(&mut instance);
            capacity_type(&instance)
        };
        assert_eq!(with(&|_| {}), "on-demand");
        assert_eq!(with(&|it| it.lifecycle = Some("spot".to_owned())), "spot");
        assert_eq!(with(&|it| it.spot_request_id = Some("sir-1".to_owned())), "spot");
        assert_eq!(with(&|it| it.lifecycle = Some("capacity-block".to_owned())), "on-demand");
        let reserved = |preference: Option<&str>| {
            with(&|it| {
                it.reservation_id = Some("cr-1".to_owned());
                it.reservation_preference = preference.map(str::to_owned);
            })
        };
        assert_eq!((reserved(Some(RESERVATIONS_ONLY)), reserved(Some("open"))), ("reserved", "on-demand"));
    }

    #[test]
    fn ids_are_read_and_written() {
        assert_eq!(instance_id(&provider_id("us-east-1a", "i-0123")), Some("i-0123"));
        for other in ["", "aws:///us-east-1a/fargate-ip-1", "kwok://node", "aws:///"] {
            assert_eq!(instance_id(other), None, "{other}");
        }
        let port = to_port(&instance("i-1", "l"));
        assert_eq!((port.launch_id.as_str(), port.node_pool.as_str(), port.node_claim.as_str()), ("l", "general", ""));
    }

    #[test]
    fn an_end_is_explained() {
        let of = |code: &str, message: &str| {
            let mut instance = instance("i-1", "l");
            instance.state = InstanceState::Terminated;
            instance.state_reason = Some(StateReason { code: code.to_owned(), message: message.to_owned() });
            ended(&instance).unwrap()
        };
        let key = of("Client.InvalidKMSKey.InvalidState", "Client.InvalidKMSKey.InvalidState: The KMS key is disabled");
        assert!(key.cause == EndCause::Encryption && key.text.contains("kms:CreateGrant"));
        assert!(key.text.ends_with("(Client.InvalidKMSKey.InvalidState: The KMS key is disabled)"), "{}", key.text);
        for (code, message, cause) in [
            ("Client.InternalError", "Client.InternalError: Client error on launch", EndCause::Encryption),
            ("Client.VolumeLimitExceeded", "Volume limit exceeded", EndCause::VolumeQuota),
            ("Client.InvalidSnapshot.NotFound", "", EndCause::Snapshot),
            ("Server.SpotInstanceTermination", "", EndCause::Interrupted),
            ("Server.InsufficientInstanceCapacity", "", EndCause::Capacity),
            ("Client.X", "There are insufficient free addresses in subnet", EndCause::Addresses),
            ("", "", EndCause::Unknown),
        ] {
            assert_eq!(of(code, message).cause, cause, "{code}");
        }
        assert_eq!(of("", "").text, "EC2 does not say why");
        assert_eq!(ended(&instance("i-1", "l")), None);
    }
}
