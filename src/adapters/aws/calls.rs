//! Every call to AWS through its SDK, and nothing else: requests and answers are converted ([`requests`], [`answers`]), failures get their
//! code, calls are counted. What to ask, and when, is decided elsewhere. Cargo feature `aws`.
//!
//! Credentials and endpoints are the SDK's: environment, profile, web identity, Pod Identity, instance metadata; `AWS_ENDPOINT_URL` and
//! `AWS_ENDPOINT_URL_EC2` and so on.

mod answers;
mod clients;
mod instance_types;
mod requests;

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::types::LocationType;
use jiff::Timestamp;

use super::api::account::{
    CallerIdentity, ClusterAnswer, InstanceProfile, NewInstanceProfile, ParameterAnswers, QueueMessage, Quota,
};
use super::api::instances::{CapacityReservation, InstanceAnswer, InstanceStatus, PlacementGroup, StateChange};
use super::api::launch::{FleetAnswer, FleetRequest, LaunchTemplateRequest, ListedTemplate, RunRequest};
use super::api::network::{Image, ImageQuery, SecurityGroup, SpotPrice, Subnet, TypeOffering, Zone};
use super::api::{Action, ApiError, Ec2Api, Filter, Page, Tags, Tally};
use crate::core::catalog::facts::InstanceFacts;

use answers::required;
use clients::Clients;
pub use clients::Connection;

/// What EC2 answers to a dry run of something that would be allowed.
const WOULD_BE_ALLOWED: &str = "DryRunOperation";

/// Prices of these alone are asked for.
const LINUX: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

/// The calls, in one region.
#[derive(Debug)]
pub struct Calls {
    clients: Clients,
    tally: Tally,
}

impl Calls {
    /// Reads credentials and endpoints; calls nothing yet.
    pub async fn connect(connection: &Connection) -> Self {
        Self { clients: Clients::new(connection).await, tally: connection.tally.clone() }
    }

    /// The region, as it was given or as the environment says it.
    pub fn region(&self) -> &str {
        &self.clients.region
    }

    fn done<T, E>(&self, action: Action, result: Result<T, SdkError<E>>) -> Result<T, ApiError>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    {
        let result = result.map_err(|error| failure(action, &error));
        match &result {
            Err(error) if error.code == WOULD_BE_ALLOWED => self.tally.count(action, &Ok(())),
            result => self.tally.count(action, result),
        }
        result
    }
}

/// Whether a dry run says that it would be allowed.
fn allowed<T: Default>(result: Result<T, ApiError>) -> Result<T, ApiError> {
    match result {
        Err(error) if error.code == WOULD_BE_ALLOWED => Ok(T::default()),
        result => result,
    }
}

/// The code that a status of HTTP stands for, where it is all that is said.
fn by_status(status: u16) -> Option<&'static str> {
    match status {
        429 => Some("Throttling"),
        401 | 403 => Some("AccessDenied"),
        500.. => Some("ServiceUnavailable"),
        _ => None,
    }
}

/// The failure with AWS's code, or a word of ours where there was no answer.
fn failure<E>(action: Action, error: &SdkError<E>) -> ApiError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let text = crate::ports::chain(error);
    match error {
        SdkError::TimeoutError(_) => ApiError::of(action, "Timeout", "no answer in time"),
        SdkError::ServiceError(answer) => {
            let meta = answer.err().meta();
            let status = answer.raw().status().as_u16();
            let code = meta.code().unwrap_or_else(|| by_status(status).unwrap_or("Unknown"));
            ApiError::of_status(action, status, code, meta.message().unwrap_or(&text))
        }
        // The chain of providers says so in words only, and then what it tried, a line each.
        _ if text.contains("no credentials found") => {
            ApiError::of(action, "NoCredentials", "no credentials were found")
        }
        _ if text.contains("credentials") => ApiError::of(action, "NoCredentials", text),
        // Whoever answers in a form that is not the service's, such as a proxy, may still say what it is by the status.
        SdkError::ResponseError(answer) => {
            ApiError::of(action, by_status(answer.raw().status().as_u16()).unwrap_or("Unreachable"), text)
        }
        SdkError::DispatchFailure(_) => ApiError::of(action, "Unreachable", text),
        _ => ApiError::of(action, "InvalidRequest", text),
    }
}

fn page<T, U>(items: &[T], convert: impl Fn(&T) -> Option<U>, next: Option<&str>) -> Page<U> {
    Page { items: items.iter().filter_map(convert).collect(), next: next.map(str::to_owned) }
}

impl Ec2Api for Calls {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    async fn describe_regions(&self) -> Result<Vec<String>, ApiError> {
        let answer = self.done(Action::DescribeRegions, self.clients.read.describe_regions().send().await)?;
        Ok(answer.regions().iter().filter_map(|region| region.region_name().map(str::to_owned)).collect())
    }

    async fn describe_availability_zones(&self) -> Result<Vec<Zone>, ApiError> {
        let call = self.clients.read.describe_availability_zones();
        let answer = self.done(Action::DescribeAvailabilityZones, call.send().await)?;
        Ok(answer.availability_zones().iter().filter_map(answers::zone).collect())
    }

    async fn describe_subnets(&self, filters: &[Filter], token: Option<&str>) -> Result<Page<Subnet>, ApiError> {
        let call = self.clients.read.describe_subnets().max_results(1_000);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeSubnets, call.send().await)?;
        Ok(page(answer.subnets(), answers::subnet, answer.next_token()))
    }

    async fn describe_security_groups(
        &self,
        filters: &[Filter],
        token: Option<&str>,
    ) -> Result<Page<SecurityGroup>, ApiError> {
        let call = self.clients.read.describe_security_groups().max_results(1_000);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeSecurityGroups, call.send().await)?;
        Ok(page(answer.security_groups(), answers::security_group, answer.next_token()))
    }

    async fn describe_images(&self, query: &ImageQuery, token: Option<&str>) -> Result<Page<Image>, ApiError> {
        let call = self.clients.read.describe_images().include_deprecated(true).max_results(1_000);
        let owners = Some(query.owners.clone()).filter(|owners| !owners.is_empty());
        let call = call.set_owners(owners).set_filters(requests::filters(&query.filters));
        let answer = self.done(Action::DescribeImages, call.set_next_token(token.map(str::to_owned)).send().await)?;
        Ok(page(answer.images(), answers::image, answer.next_token()))
    }

    async fn describe_capacity_reservations(
        &self,
        filters: &[Filter],
        token: Option<&str>,
    ) -> Result<Page<CapacityReservation>, ApiError> {
        let call = self.clients.read.describe_capacity_reservations().max_results(1_000);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeCapacityReservations, call.send().await)?;
        Ok(page(answer.capacity_reservations(), answers::reservation, answer.next_token()))
    }

    async fn describe_placement_groups(&self, filters: &[Filter]) -> Result<Vec<PlacementGroup>, ApiError> {
        let call = self.clients.read.describe_placement_groups().set_filters(requests::filters(filters));
        let answer = self.done(Action::DescribePlacementGroups, call.send().await)?;
        Ok(answer.placement_groups().iter().filter_map(answers::placement_group).collect())
    }

    async fn describe_instance_types(&self, token: Option<&str>) -> Result<Page<InstanceFacts>, ApiError> {
        let call = self.clients.read.describe_instance_types().max_results(100);
        let answer =
            self.done(Action::DescribeInstanceTypes, call.set_next_token(token.map(str::to_owned)).send().await)?;
        Ok(page(answer.instance_types(), instance_types::facts, answer.next_token()))
    }

    async fn describe_instance_type_offerings(&self, token: Option<&str>) -> Result<Page<TypeOffering>, ApiError> {
        let call = self.clients.read.describe_instance_type_offerings().max_results(1_000);
        let call = call.location_type(LocationType::AvailabilityZone).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeInstanceTypeOfferings, call.send().await)?;
        Ok(page(answer.instance_type_offerings(), answers::type_offering, answer.next_token()))
    }

    async fn describe_spot_price_history(
        &self,
        from: Timestamp,
        token: Option<&str>,
    ) -> Result<Page<SpotPrice>, ApiError> {
        let call = self.clients.read.describe_spot_price_history().start_time(requests::time(from));
        let products = LINUX.map(str::to_owned).into();
        let call = call.set_product_descriptions(Some(products)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeSpotPriceHistory, call.send().await)?;
        Ok(page(answer.spot_price_history(), answers::spot_price, answer.next_token()))
    }

    async fn describe_instances(
        &self,
        filters: &[Filter],
        token: Option<&str>,
    ) -> Result<Page<InstanceAnswer>, ApiError> {
        let call = self.clients.read.describe_instances().max_results(1_000);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeInstances, call.send().await)?;
        let instances = answer.reservations().iter().flat_map(aws_sdk_ec2::types::Reservation::instances);
        let next = answer.next_token().map(str::to_owned);
        Ok(Page { items: instances.filter_map(answers::instance).collect(), next })
    }

    async fn describe_instance_status(
        &self,
        filters: &[Filter],
        token: Option<&str>,
    ) -> Result<Page<InstanceStatus>, ApiError> {
        let call = self.clients.read.describe_instance_status().max_results(1_000);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeInstanceStatus, call.send().await)?;
        Ok(page(answer.instance_statuses(), answers::status, answer.next_token()))
    }

    async fn terminate_instances(&self, ids: &[String]) -> Result<Vec<StateChange>, ApiError> {
        let call = self.clients.once.terminate_instances().set_instance_ids(Some(ids.to_vec()));
        let answer = self.done(Action::TerminateInstances, call.send().await)?;
        Ok(answer.terminating_instances().iter().filter_map(answers::state_change).collect())
    }

    async fn create_tags(&self, resources: &[String], tags: &Tags) -> Result<(), ApiError> {
        let call = self.clients.write.create_tags().set_resources(Some(resources.to_vec()));
        let call = call.set_tags(Some(requests::tags(tags)));
        self.done(Action::CreateTags, call.send().await).map(|_| ())
    }

    async fn describe_launch_templates(
        &self,
        filters: &[Filter],
        token: Option<&str>,
    ) -> Result<Page<ListedTemplate>, ApiError> {
        let call = self.clients.read.describe_launch_templates().max_results(200);
        let call = call.set_filters(requests::filters(filters)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::DescribeLaunchTemplates, call.send().await)?;
        Ok(page(answer.launch_templates(), answers::launch_template, answer.next_token()))
    }

    async fn create_launch_template(&self, request: &LaunchTemplateRequest, dry_run: bool) -> Result<(), ApiError> {
        let call = self.clients.write.create_launch_template().dry_run(dry_run);
        let call = call.client_token(&request.client_token).launch_template_name(&request.name);
        let own = requests::tag_specifications(&["launch-template"], &request.template.tags);
        let call = call.set_tag_specifications(Some(own));
        let call = call.launch_template_data(requests::template_data(&request.template));
        // A token stands for what was made, and a dry run makes nothing.
        let call = if dry_run { call.set_client_token(None) } else { call };
        let answer = self.done(Action::CreateLaunchTemplate, call.send().await).map(|_| ());
        if dry_run { allowed(answer) } else { answer }
    }

    async fn delete_launch_template(&self, name: &str) -> Result<(), ApiError> {
        let call = self.clients.write.delete_launch_template().launch_template_name(name);
        self.done(Action::DeleteLaunchTemplate, call.send().await).map(|_| ())
    }

    async fn create_fleet(&self, request: &FleetRequest, dry_run: bool) -> Result<FleetAnswer, ApiError> {
        let call = requests::fleet(self.clients.once.create_fleet(), request).dry_run(dry_run);
        let call = if dry_run { call.set_client_token(None) } else { call };
        let answer = self.done(Action::CreateFleet, call.send().await);
        let answer = answer.map(|answer| answers::fleet(&answer));
        if dry_run { allowed(answer) } else { answer }
    }

    async fn run_instances_dry_run(&self, request: &RunRequest) -> Result<(), ApiError> {
        let call = requests::run(self.clients.write.run_instances(), request).dry_run(true);
        allowed(self.done(Action::RunInstances, call.send().await).map(|_| ()))
    }

    async fn get_parameters(&self, names: &[String]) -> Result<ParameterAnswers, ApiError> {
        let call = self.clients.ssm.get_parameters().set_names(Some(names.to_vec()));
        let answer = self.done(Action::GetParameters, call.send().await)?;
        let found: Vec<_> = answer.parameters().iter().filter_map(answers::parameter).collect();
        Ok(ParameterAnswers::of(names, &found, answer.invalid_parameters().iter().cloned()))
    }

    async fn describe_cluster(&self, name: &str) -> Result<ClusterAnswer, ApiError> {
        let call = self.clients.eks.describe_cluster().name(name);
        let answer = self.done(Action::DescribeCluster, call.send().await)?;
        required(
            Action::DescribeCluster,
            answer.cluster().and_then(answers::cluster),
            "endpoint, version or certificates",
        )
    }

    async fn get_caller_identity(&self) -> Result<CallerIdentity, ApiError> {
        let answer = self.done(Action::GetCallerIdentity, self.clients.sts.get_caller_identity().send().await)?;
        let identity = answer.account().zip(answer.arn());
        let identity =
            identity.map(|(account, arn)| CallerIdentity { account: account.to_owned(), arn: arn.to_owned() });
        required(Action::GetCallerIdentity, identity, "account")
    }

    async fn decode_authorization_message(&self, encoded: &str) -> Result<String, ApiError> {
        let call = self.clients.sts.decode_authorization_message().encoded_message(encoded);
        let answer = self.done(Action::DecodeAuthorizationMessage, call.send().await)?;
        required(Action::DecodeAuthorizationMessage, answer.decoded_message().map(str::to_owned), "message")
    }

    async fn get_instance_profile(&self, name: &str) -> Result<InstanceProfile, ApiError> {
        let call = self.clients.iam.get_instance_profile().instance_profile_name(name);
        let answer = self.done(Action::GetInstanceProfile, call.send().await)?;
        required(Action::GetInstanceProfile, answer.instance_profile().map(answers::instance_profile), "profile")
    }

    async fn list_instance_profiles(
        &self,
        path_prefix: &str,
        token: Option<&str>,
    ) -> Result<Page<InstanceProfile>, ApiError> {
        let call = self.clients.iam.list_instance_profiles().path_prefix(path_prefix);
        let answer = self.done(Action::ListInstanceProfiles, call.set_marker(token.map(str::to_owned)).send().await)?;
        let next = answer.marker().filter(|_| answer.is_truncated());
        Ok(page(answer.instance_profiles(), |one| Some(answers::instance_profile(one)), next))
    }

    async fn create_instance_profile(&self, profile: &NewInstanceProfile) -> Result<InstanceProfile, ApiError> {
        let action = Action::CreateInstanceProfile;
        let call = self.clients.iam.create_instance_profile().instance_profile_name(&profile.name).path(&profile.path);
        let call = call.set_tags(Some(requests::iam_tags(action, &profile.tags)?));
        let answer = self.done(action, call.send().await)?;
        required(action, answer.instance_profile().map(answers::instance_profile), "profile")
    }

    async fn add_role_to_instance_profile(&self, profile: &str, role: &str) -> Result<(), ApiError> {
        let call = self.clients.iam.add_role_to_instance_profile().instance_profile_name(profile).role_name(role);
        self.done(Action::AddRoleToInstanceProfile, call.send().await).map(|_| ())
    }

    async fn remove_role_from_instance_profile(&self, profile: &str, role: &str) -> Result<(), ApiError> {
        let call = self.clients.iam.remove_role_from_instance_profile().instance_profile_name(profile).role_name(role);
        self.done(Action::RemoveRoleFromInstanceProfile, call.send().await).map(|_| ())
    }

    async fn delete_instance_profile(&self, name: &str) -> Result<(), ApiError> {
        let call = self.clients.iam.delete_instance_profile().instance_profile_name(name);
        self.done(Action::DeleteInstanceProfile, call.send().await).map(|_| ())
    }

    async fn get_queue_url(&self, name: &str) -> Result<String, ApiError> {
        let call = self.clients.sqs.get_queue_url().queue_name(name);
        let answer = self.done(Action::GetQueueUrl, call.send().await)?;
        required(Action::GetQueueUrl, answer.queue_url().map(str::to_owned), "URL")
    }

    async fn receive_messages(&self, queue_url: &str, wait_seconds: u32) -> Result<Vec<QueueMessage>, ApiError> {
        let call = requests::receive(self.clients.sqs.receive_message(), queue_url, wait_seconds);
        let answer = self.done(Action::ReceiveMessage, call.send().await)?;
        Ok(answer.messages().iter().filter_map(answers::message).collect())
    }

    async fn delete_message(&self, queue_url: &str, receipt: &str) -> Result<(), ApiError> {
        let call = self.clients.sqs.delete_message().queue_url(queue_url).receipt_handle(receipt);
        self.done(Action::DeleteMessage, call.send().await).map(|_| ())
    }

    async fn get_products(&self, filters: &[Filter], token: Option<&str>) -> Result<Page<String>, ApiError> {
        let call = self.clients.pricing.get_products().service_code("AmazonEC2").max_results(100);
        let call = call.set_filters(Some(requests::pricing_filters(filters)?)).set_next_token(token.map(str::to_owned));
        let answer = self.done(Action::GetProducts, call.send().await)?;
        Ok(page(answer.price_list(), |text| Some(text.clone()), answer.next_token()))
    }

    async fn get_service_quota(&self, code: &str) -> Result<Quota, ApiError> {
        let call = self.clients.quotas.get_service_quota().service_code("ec2").quota_code(code);
        let answer = self.done(Action::GetServiceQuota, call.send().await)?;
        required(Action::GetServiceQuota, answer.quota().and_then(answers::quota), "value")
    }
}
