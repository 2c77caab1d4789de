//! The first look: whether the credentials are good, and what may not be asked or is not there, before anything is planned.

use std::ops::Deref;

use crate::adapters::aws::api::account::CallerIdentity;
use crate::adapters::aws::api::{Action, ApiError, Ec2Api};
use crate::adapters::aws::instances;
use crate::adapters::aws::refusals;
use crate::ports::Clock;

use super::AwsCloud;

/// What the first look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    pub caller: CallerIdentity,
    /// What is missing, for people: each names the permission or the thing, and what is not possible without it.
    pub missing: Vec<String>,
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> AwsCloud<P, C> {
    /// Looks once. An error: the credentials are not good, or AWS is out of reach.
    pub async fn open(&self) -> Result<Opening, ApiError> {
        let caller = self.api().get_caller_identity().await?;
        let identity = &self.settings.identity;
        let mut missing = Vec::new();
        if let Err(error) = self.api().describe_cluster(&identity.cluster).await {
            missing.push(self.lacks(&error).await);
        }
        if let Err(error) = instances::list(self.api(), identity).await {
            missing.push(self.lacks(&error).await);
        }
        if let Err(error) = self.api().describe_availability_zones().await {
            missing.push(self.lacks(&error).await);
        }
        if let Some(queue) = &self.settings.queue
            && let Err(error) = self.api().get_queue_url(queue).await
        {
            missing.push(format!("queue {queue}: {}", self.lacks(&error).await));
        }
        Ok(Opening { caller, missing })
    }

    async fn lacks(&self, error: &ApiError) -> String {
        let cluster = &self.settings.identity.cluster;
        let name = match error.action {
            Action::DescribeCluster => format!(" (cluster {cluster})"),
            _ => String::new(),
        };
        format!("{}{name}; it is for: {}", refusals::explain(self.api(), error).await, error.action.why())
    }
}
