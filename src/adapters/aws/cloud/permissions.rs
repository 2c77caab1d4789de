//! Whether launches would be allowed, for who only observes: without it plans look well until somebody is to act by them. Nothing is made:
//! the three calls are dry runs, of a launch template that there is not. EC2 looks at permissions first, so that whatever else it says counts
//! for allowed. Who launches tries what its classes would launch instead ([`super::classes`]).

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

use crate::adapters::aws::api::launch::{Config, FleetRequest, LaunchTemplateRequest, Override, RunRequest, Target};
use crate::adapters::aws::api::template::{LaunchTemplate, MetadataOptions, NAME_PREFIX, ReservationUse};
use crate::adapters::aws::api::{ApiError, Ec2Api, Tags};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::launch_templates::tags;
use crate::adapters::aws::resolution::cluster::Identity;
use crate::adapters::aws::resolution::known::LastAnswer;
use crate::api::keys;

use super::classes::TRIED_FOR;

/// What was allowed is tried again so much later.
const LIFETIME: SignedDuration = SignedDuration::from_mins(30);
/// And what was not.
const RETRY: SignedDuration = SignedDuration::from_mins(10);
/// Nobody has these; they are well-formed, since EC2 would say no more than that they are not.
const IMAGE: &str = "ami-00000000000000000";
const SUBNET: &str = "subnet-00000000000000000";
const INSTANCE_TYPE: &str = "m5.large";

#[derive(Debug)]
pub struct Permissions {
    is_wanted: bool,
    /// Whether something was denied.
    tried: Mutex<LastAnswer<bool>>,
}

impl Permissions {
    pub fn new(is_wanted: bool) -> Self {
        Self { is_wanted, tried: Mutex::default() }
    }

    /// Tries, if it is time to: what was denied.
    pub async fn denied(&self, api: &impl Ec2Api, identity: &Identity, now: Timestamp) -> Vec<ApiError> {
        let mut tried = self.tried.lock().await;
        let lifetime = if tried.value() == Some(&true) { RETRY } else { LIFETIME };
        // Tags that EC2 would refuse are those of the cluster's name, which is said elsewhere.
        let tags = tags::of_launch(&Tags::new(), owner(identity));
        let Some(tags) = tags.ok().filter(|_| self.is_wanted && tried.is_due(lifetime, now)) else { return Vec::new() };
        let answers = [
            api.create_launch_template(&template(&tags), true).await.err(),
            api.create_fleet(&fleet(&identity.region, &tags), true).await.err(),
            api.run_instances_dry_run(&run(tags)).await.err(),
        ];
        let mut denied: Vec<ApiError> = answers.into_iter().flatten().collect();
        denied.retain(|error| error.class == FailureClass::Denied);
        tried.record(Ok(!denied.is_empty()), now);
        denied
    }
}

/// The policy lets nothing be made without these tags.
fn owner(identity: &Identity) -> tags::Owner<'_> {
    tags::Owner {
        cluster: &identity.cluster,
        installation: &identity.installation,
        node_pool: TRIED_FOR,
        node_class: TRIED_FOR,
    }
}

fn name() -> String {
    format!("{NAME_PREFIX}{TRIED_FOR}")
}

fn template(tags: &Tags) -> LaunchTemplateRequest {
    let metadata = MetadataOptions {
        http_endpoint: "enabled".to_owned(),
        http_protocol_ipv6: None,
        http_put_response_hop_limit: 1,
        http_tokens: "required".to_owned(),
    };
    let template = LaunchTemplate {
        image_id: IMAGE.to_owned(),
        user_data: String::new(),
        instance_profile: TRIED_FOR.to_owned(),
        block_devices: Vec::new(),
        metadata,
        interfaces: Vec::new(),
        detailed_monitoring: false,
        nested_virtualization: None,
        enclave: false,
        tenancy: keys::DEFAULT_TENANCY.to_owned(),
        placement_group: None,
        reservation: ReservationUse::Open,
        tags: tags.clone(),
        tags_spot_requests: false,
    };
    LaunchTemplateRequest { name: name(), client_token: TRIED_FOR.to_owned(), template }
}

fn fleet(region: &str, tags: &Tags) -> FleetRequest {
    let only = Override {
        instance_type: INSTANCE_TYPE.to_owned(),
        zone: format!("{region}a"),
        subnet_id: SUBNET.to_owned(),
        image_id: IMAGE.to_owned(),
        priority: 0,
    };
    FleetRequest {
        client_token: TRIED_FOR.to_owned(),
        capacity_type: keys::ON_DEMAND.to_owned(),
        target: Target::OnDemand,
        count: 1,
        strategy: None,
        configs: vec![Config { template: name(), overrides: vec![only] }],
        tags: tags.clone(),
        context: None,
    }
}

fn run(tags: Tags) -> RunRequest {
    RunRequest {
        launch_template: name(),
        instance_type: INSTANCE_TYPE.to_owned(),
        image_id: IMAGE.to_owned(),
        subnet_id: SUBNET.to_owned(),
        tags,
    }
}
