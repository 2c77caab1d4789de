//! The SDK's clients: time limits on every call, and retries of what reads, of what writes and of what launches kept apart, so that Describe
//! calls that fail do not use up the retries of launches.

use std::fmt;
use std::time::Duration;

use aws_config::meta::region::RegionProviderChain;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_ec2::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_ec2::config::timeout::TimeoutConfig;

use crate::adapters::aws::api::Tally;

/// Asked when neither the settings nor the environment name a region.
const DEFAULT_REGION: &str = "us-east-1";

/// The SDK's own; it has no other limit by default.
const CONNECT: Duration = Duration::from_millis(3_100);
/// A page of a thousand instances takes a few seconds.
const ATTEMPT: Duration = Duration::from_secs(15);
/// With its retries. What is asked next may wait for this answer.
const CALL: Duration = Duration::from_secs(40);
/// A fleet of many instances takes its time; as long as in the reference.
const LAUNCH: Duration = Duration::from_secs(240);
const ATTEMPTS: u32 = 3;

/// Where to connect to.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// `None`: as the environment says.
    pub region: Option<String>,
    /// Of all services; `None`: as the environment says, else Amazon's.
    pub endpoint_url: Option<String>,
    /// Each call is tried once: for servers that answer with failures that the SDK takes for passing ones.
    pub single_attempt: bool,
    /// Where calls are counted.
    pub tally: Tally,
}

/// One for each service, and three for EC2.
pub(super) struct Clients {
    pub(super) region: String,
    pub(super) read: aws_sdk_ec2::Client,
    pub(super) write: aws_sdk_ec2::Client,
    /// One attempt: who launches or ends instances tries again by itself, with the same token.
    pub(super) once: aws_sdk_ec2::Client,
    pub(super) eks: aws_sdk_eks::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) pricing: aws_sdk_pricing::Client,
    pub(super) quotas: aws_sdk_servicequotas::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
    pub(super) sts: aws_sdk_sts::Client,
}

impl fmt::Debug for Clients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Clients").field("region", &self.region).finish_non_exhaustive()
    }
}

impl Clients {
    pub(super) async fn new(connection: &Connection) -> Self {
        let region = match &connection.region {
            Some(region) => Region::new(region.clone()),
            None => {
                let by_environment = RegionProviderChain::default_provider().or_else(DEFAULT_REGION).region().await;
                by_environment.unwrap_or_else(|| Region::from_static(DEFAULT_REGION))
            }
        };
        let attempts = if connection.single_attempt { 1 } else { ATTEMPTS };
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT).read_timeout(ATTEMPT);
        let timeouts = timeouts.operation_attempt_timeout(ATTEMPT).operation_timeout(CALL).build();
        let mut loader = aws_config::defaults(BehaviorVersion::latest()).region(region.clone());
        loader = loader.retry_config(RetryConfig::standard().with_max_attempts(attempts)).timeout_config(timeouts);
        if let Some(url) = &connection.endpoint_url {
            loader = loader.endpoint_url(url);
        }
        let config = loader.load().await;
        let ec2 = |partition: &'static str| {
            aws_sdk_ec2::config::Builder::from(&config).retry_partition(RetryPartition::new(partition))
        };
        let launches = TimeoutConfig::builder().connect_timeout(CONNECT).read_timeout(LAUNCH);
        let launches = launches.operation_attempt_timeout(LAUNCH).operation_timeout(LAUNCH).build();
        let once = ec2("cutlist-launch").retry_config(RetryConfig::disabled()).timeout_config(launches).build();
        let prices = config.clone().into_builder().region(Region::from_static(pricing_region(region.as_ref()))).build();
        Self {
            region: region.as_ref().to_owned(),
            read: aws_sdk_ec2::Client::from_conf(ec2("cutlist-read").build()),
            write: aws_sdk_ec2::Client::from_conf(ec2("cutlist-write").build()),
            once: aws_sdk_ec2::Client::from_conf(once),
            eks: aws_sdk_eks::Client::new(&config),
            iam: aws_sdk_iam::Client::new(&config),
            pricing: aws_sdk_pricing::Client::new(&prices),
            quotas: aws_sdk_servicequotas::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            ssm: aws_sdk_ssm::Client::new(&config),
            sts: aws_sdk_sts::Client::new(&config),
        }
    }
}

/// The Price List is served in few regions.
fn pricing_region(region: &str) -> &'static str {
    match region.split('-').next().unwrap_or_default() {
        "cn" => "cn-northwest-1",
        "ap" => "ap-south-1",
        "eu" => "eu-central-1",
        _ => "us-east-1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_asked_for_nearby() {
        for (region, nearby) in
            [("us-west-2", "us-east-1"), ("eu-west-1", "eu-central-1"), ("cn-north-1", "cn-northwest-1")]
        {
            assert_eq!(pricing_region(region), nearby);
        }
    }
}
