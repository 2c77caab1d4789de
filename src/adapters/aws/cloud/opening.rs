//! The first look: whether the credentials are good, and what may not be asked or is not there, before anything is planned.

use std::ops::Deref;

use crate::adapters::aws::api::account::CallerIdentity;
use crate::adapters::aws::api::{Action, ApiError, Ec2Api};
use crate::adapters::aws::failures::FailureClass;
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
    /// Those of them that are no permissions: what is denied stands in plans as well.
    pub not_there: Vec<String>,
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> AwsCloud<P, C> {
    /// Looks once. An error: the credentials are not good, or AWS is out of reach.
    pub async fn open(&self) -> Result<Opening, ApiError> {
        let caller = self.api().get_caller_identity().await?;
        let identity = &self.settings.identity;
        let mut errors = Vec::new();
        errors.extend(self.api().describe_cluster(&identity.cluster).await.err());
        errors.extend(instances::list(self.api(), identity).await.err());
        errors.extend(self.api().describe_availability_zones().await.err());
        if let Some(queue) = &self.settings.queue {
            errors.extend(self.api().get_queue_url(queue).await.err());
        }
        errors.extend(self.permissions.denied(self.api(), identity, self.pace.now()).await);
        let (mut missing, mut not_there) = (Vec::new(), Vec::new());
        for error in errors {
            let text = self.lacks(&error).await;
            if error.class != FailureClass::Denied {
                not_there.push(text.clone());
            }
            missing.push(text);
        }
        Ok(Opening { caller, missing, not_there })
    }

    async fn lacks(&self, error: &ApiError) -> String {
        let cluster = &self.settings.identity.cluster;
        let name = match error.action {
            Action::DescribeCluster => format!(" (cluster {cluster})"),
            Action::GetQueueUrl => {
                self.settings.queue.as_ref().map(|queue| format!(" (queue {queue})")).unwrap_or_default()
            }
            _ => String::new(),
        };
        format!("{}{name}; it is for: {}", refusals::explain(self.api(), error).await, error.action.why())
    }
}
