//! The first look: whether the credentials are good, and what may not be asked or is not there, before anything is planned.

use std::ops::Deref;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::adapters::aws::api::account::{CallerIdentity, ClusterAnswer};
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
    /// What EKS has under the name of the cluster, if it says so.
    pub cluster: Option<ClusterAnswer>,
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
        let cluster = self.api().describe_cluster(&identity.cluster).await;
        errors.extend(cluster.as_ref().err().cloned());
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
        Ok(Opening { caller, cluster: cluster.ok(), missing, not_there })
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

impl Opening {
    /// Whether EKS has this cluster under the name, whose API server is believed by these certificates (DER): nodes join the one that it has.
    /// `None` where one of the two does not say.
    pub fn is_of(&self, certificates: &[Vec<u8>]) -> Option<bool> {
        let of_eks = self.cluster.as_ref().map(|cluster| encoded(&cluster.certificate_authority))?;
        let known: Vec<String> = certificates.iter().map(|certificate| BASE64_STANDARD.encode(certificate)).collect();
        let says = !of_eks.is_empty() && !known.is_empty();
        says.then(|| of_eks.iter().any(|certificate| known.contains(certificate)))
    }
}

/// The certificates of a bundle in the form of PEM, of which EKS gives the base64: what is between the lines that begin and end them.
fn encoded(bundle: &str) -> Vec<String> {
    let pem = BASE64_STANDARD.decode(bundle.trim()).ok().and_then(|pem| String::from_utf8(pem).ok());
    let pem = pem.unwrap_or_default();
    let certificates = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let certificates = certificates.filter_map(|rest| rest.split("-----END CERTIFICATE-----").next());
    certificates.map(|lines| lines.split_whitespace().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(certificate: &[u8]) -> String {
        let text = BASE64_STANDARD.encode(certificate);
        let (first, second) = text.split_at(text.len() / 2);
        format!("-----BEGIN CERTIFICATE-----\n{first}\n{second}\n-----END CERTIFICATE-----\n")
    }

    fn opening(certificate_authority: String) -> Opening {
        let cluster = ClusterAnswer {
            endpoint: String::new(),
            certificate_authority,
            version: String::new(),
            service_ipv4_cidr: None,
            service_ipv6_cidr: None,
            vpc_id: None,
        };
        let caller = CallerIdentity { account: String::new(), arn: String::new() };
        Opening { caller, cluster: Some(cluster), missing: Vec::new(), not_there: Vec::new() }
    }

    #[test]
    fn a_cluster_is_known_by_its_certificates() {
        let opening = opening(BASE64_STANDARD.encode(pem(b"old one") + &pem(b"this one")));
        assert_eq!(opening.is_of(&[b"this one".to_vec()]), Some(true));
        assert_eq!(opening.is_of(&[b"another".to_vec()]), Some(false));
        assert_eq!(opening.is_of(&[]), None, "the machine's own");
    }

    #[test]
    fn what_eks_does_not_say_is_no_other_cluster() {
        for bundle in ["", "Y2E=", "%%%"] {
            assert_eq!(opening(bundle.to_owned()).is_of(&[b"this one".to_vec()]), None);
        }
    }
}
