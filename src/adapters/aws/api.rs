//! The calls to AWS as one trait over plain data: a port inside this adapter. Whoever decides knows only this, so each decision is
//! tested with a scripted account; the SDK's side of it converts and calls, and nothing else.
//!
//! Lists come in pages ([`Page`]): the SDK's side gives one page a call, and [`pages::all`] follows them, up to a limit.
//! Times are arguments; nothing here reads a clock.

pub mod account;
pub mod actions;
pub mod failure;
pub mod instances;
pub mod launch;
pub mod network;
pub mod pages;
pub mod policy;
pub mod tally;
pub mod template;

use std::collections::BTreeMap;
use std::future::Future;

use jiff::Timestamp;

use crate::core::catalog::facts::InstanceFacts;

use account::{
    CallerIdentity, ClusterAnswer, InstanceProfile, NewInstanceProfile, ParameterAnswers, QueueMessage, Quota,
};
use instances::{CapacityReservation, InstanceAnswer, InstanceStatus, PlacementGroup, StateChange};
use launch::{FleetAnswer, FleetRequest, LaunchTemplateRequest, ListedTemplate, RunRequest};
use network::{Image, ImageQuery, SecurityGroup, SpotPrice, Subnet, TypeOffering, Zone};

pub use actions::Action;
pub use failure::ApiError;
pub use pages::Page;
pub use tally::Tally;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// A filter of a Describe call: any of the values, in which EC2 takes `*` and `?` for what they are in globs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

impl Filter {
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name: name.into(), values: values.into_iter().map(Into::into).collect() }
    }
}

/// Every call that is made to AWS. An error says the action, and what kind of failure it is.
///
/// `page` is the token of the page before; `None` asks for the first. A call with `dry_run` changes nothing: `Ok` says that it would be
/// allowed.
pub trait Ec2Api {
    /// Counts every call of this trait.
    fn tally(&self) -> &Tally;

    /// Those that are enabled for the account.
    fn describe_regions(&self) -> impl Future<Output = Result<Vec<String>, ApiError>>;
    fn describe_availability_zones(&self) -> impl Future<Output = Result<Vec<Zone>, ApiError>>;
    fn describe_subnets(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<Subnet>, ApiError>>;
    fn describe_security_groups(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<SecurityGroup>, ApiError>>;
    /// Deprecated images are included.
    fn describe_images(
        &self,
        query: &ImageQuery,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<Image>, ApiError>>;
    fn describe_capacity_reservations(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<CapacityReservation>, ApiError>>;
    /// This list has no pages.
    fn describe_placement_groups(
        &self,
        filters: &[Filter],
    ) -> impl Future<Output = Result<Vec<PlacementGroup>, ApiError>>;
    /// Virtual machines for amd64 and arm64.
    fn describe_instance_types(
        &self,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<InstanceFacts>, ApiError>>;
    /// By zone.
    fn describe_instance_type_offerings(
        &self,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<TypeOffering>, ApiError>>;
    /// Prices of Linux from that moment on.
    fn describe_spot_price_history(
        &self,
        from: Timestamp,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<SpotPrice>, ApiError>>;

    fn describe_instances(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<InstanceAnswer>, ApiError>>;
    /// Of the whole account in this region: filters by instance are not allowed together with those by status.
    fn describe_instance_status(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<InstanceStatus>, ApiError>>;
    /// At most 1,000 of them. One that is not known fails the call, and none ends.
    fn terminate_instances(&self, ids: &[String]) -> impl Future<Output = Result<Vec<StateChange>, ApiError>>;
    fn create_tags(&self, resources: &[String], tags: &Tags) -> impl Future<Output = Result<(), ApiError>>;

    fn describe_launch_templates(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<ListedTemplate>, ApiError>>;
    fn create_launch_template(
        &self,
        request: &LaunchTemplateRequest,
        dry_run: bool,
    ) -> impl Future<Output = Result<(), ApiError>>;
    fn delete_launch_template(&self, name: &str) -> impl Future<Output = Result<(), ApiError>>;
    /// One attempt: whoever asks again keeps the client token. With `dry_run` the answer is empty.
    fn create_fleet(
        &self,
        request: &FleetRequest,
        dry_run: bool,
    ) -> impl Future<Output = Result<FleetAnswer, ApiError>>;
    /// Always a dry run.
    fn run_instances_dry_run(&self, request: &RunRequest) -> impl Future<Output = Result<(), ApiError>>;

    /// At most ten names. A name that does not exist is no error: it stands among `missing`.
    fn get_parameters(&self, names: &[String]) -> impl Future<Output = Result<ParameterAnswers, ApiError>>;
    fn describe_cluster(&self, name: &str) -> impl Future<Output = Result<ClusterAnswer, ApiError>>;
    fn get_caller_identity(&self) -> impl Future<Output = Result<CallerIdentity, ApiError>>;
    /// What EC2 encoded in its refusal, as JSON.
    fn decode_authorization_message(&self, encoded: &str) -> impl Future<Output = Result<String, ApiError>>;

    fn get_instance_profile(&self, name: &str) -> impl Future<Output = Result<InstanceProfile, ApiError>>;
    fn list_instance_profiles(
        &self,
        path_prefix: &str,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<InstanceProfile>, ApiError>>;
    fn create_instance_profile(
        &self,
        profile: &NewInstanceProfile,
    ) -> impl Future<Output = Result<InstanceProfile, ApiError>>;
    fn add_role_to_instance_profile(&self, profile: &str, role: &str) -> impl Future<Output = Result<(), ApiError>>;
    fn remove_role_from_instance_profile(
        &self,
        profile: &str,
        role: &str,
    ) -> impl Future<Output = Result<(), ApiError>>;
    fn delete_instance_profile(&self, name: &str) -> impl Future<Output = Result<(), ApiError>>;

    /// The URL of the queue with that name.
    fn get_queue_url(&self, name: &str) -> impl Future<Output = Result<String, ApiError>>;
    /// Up to ten messages; waits so many seconds for the first.
    fn receive_messages(
        &self,
        queue_url: &str,
        wait_seconds: u32,
    ) -> impl Future<Output = Result<Vec<QueueMessage>, ApiError>>;
    fn delete_message(&self, queue_url: &str, receipt: &str) -> impl Future<Output = Result<(), ApiError>>;

    /// Products of EC2 with their prices, each as JSON.
    fn get_products(
        &self,
        filters: &[Filter],
        page: Option<&str>,
    ) -> impl Future<Output = Result<Page<String>, ApiError>>;
    /// A quota of EC2 by its code, such as `L-1216C47A`.
    fn get_service_quota(&self, code: &str) -> impl Future<Output = Result<Quota, ApiError>>;
}
