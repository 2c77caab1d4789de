//! Requests that launch: launch templates, fleets, and the dry run of RunInstances. What is put into them is decided elsewhere.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::Tags;
use super::template::LaunchTemplate;

/// A launch template as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTemplate {
    pub id: String,
    pub name: String,
    pub created_at: Option<Timestamp>,
    pub tags: Tags,
}

/// A launch template that is to be made. It has the tags that it gives.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchTemplateRequest {
    pub name: String,
    /// At most 64 ASCII characters.
    pub client_token: String,
    pub template: LaunchTemplate,
}

impl LaunchTemplateRequest {
    /// With a token that says when. Under its name a template can be made only once anyway; and with a token of before EC2 would answer as
    /// it did then, though the template was deleted meanwhile.
    pub fn dated(self, now: Timestamp) -> Self {
        let client_token = format!("{}-{}", self.client_token, now.as_second());
        Self { client_token, ..self }
    }
}

/// A fleet. `Type` is `instant`, templates are taken in version `$Latest`, and each unit is an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FleetRequest {
    /// At most 64 ASCII characters. The same one never launches twice.
    pub client_token: String,
    /// As the label of its nodes has it.
    pub capacity_type: String,
    pub target: Target,
    pub count: u32,
    /// `None` where there is nothing to choose by.
    pub strategy: Option<Strategy>,
    pub configs: Vec<Config>,
    /// Of the fleet, of instances and of volumes.
    pub tags: BTreeMap<String, String>,
    /// An id that EC2 has given a customer.
    pub context: Option<String>,
}

/// `DefaultTargetCapacityType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Target {
    OnDemand,
    Spot,
    CapacityBlock,
    /// `reserved-capacity`, with interruptible reservations.
    ReservedCapacity,
}

/// How EC2 chooses among overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Strategy {
    LowestPrice,
    Prioritized,
    PriceCapacityOptimized,
    CapacityOptimizedPrioritized,
}

/// A template with what it may be launched as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Of the launch template.
    pub template: String,
    pub overrides: Vec<Override>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    pub instance_type: String,
    /// Beside the subnet, which says it too: errors come with the override as it was sent, and then say their zone.
    pub zone: String,
    pub subnet_id: String,
    pub image_id: String,
    /// The lower, the earlier; from 0.
    pub priority: u32,
}

/// What EC2 did of a fleet: instances, failures, or some of both. Overrides come back as they were sent, where EC2 says which it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetAnswer {
    pub instances: Vec<FleetInstances>,
    pub failures: Vec<FleetFailure>,
}

/// Instances of one override.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetInstances {
    pub ids: Vec<String>,
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub subnet_id: Option<String>,
    pub image_id: Option<String>,
}

/// An entry of `Errors`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetFailure {
    pub code: String,
    pub message: String,
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub subnet_id: Option<String>,
}

/// One instance, only to see whether it would be allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    pub launch_template: String,
    pub instance_type: String,
    pub image_id: String,
    /// Of the primary interface.
    pub subnet_id: String,
    /// Of the instance and of its volumes.
    pub tags: Tags,
}
