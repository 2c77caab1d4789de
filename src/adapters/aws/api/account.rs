//! What the smaller services say: IAM, EKS, STS, SSM, SQS, Service Quotas.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;

use super::Tags;

/// A parameter of the Systems Manager, as it comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundParameter {
    pub name: String,
    pub arn: Option<String>,
    /// Which version or label was asked for, `:3`.
    pub selector: Option<String>,
    pub value: String,
}

impl FoundParameter {
    /// Whether this is what somebody asked for: by name or by ARN, and with the version or the label behind it.
    fn answers(&self, asked: &str) -> bool {
        let selector = self.selector.as_deref().unwrap_or_default().trim_start_matches(':');
        let is_it = |name: &str| {
            let behind = asked.strip_prefix(name);
            behind.is_some_and(|behind| behind.trim_start_matches(':') == selector)
        };
        is_it(&self.name) || self.arn.as_deref().is_some_and(is_it)
    }
}

/// Parameters of the Systems Manager by the names that they were asked for by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterAnswers {
    pub found: BTreeMap<String, String>,
    /// Names that do not exist.
    pub missing: BTreeSet<String>,
}

impl ParameterAnswers {
    /// Of what was asked for. An answer has the bare name, also where it was asked for by its ARN, or in one of its versions.
    pub fn of(asked: &[String], found: &[FoundParameter], missing: impl IntoIterator<Item = String>) -> Self {
        let value = |asked: &String| {
            let answer = found.iter().find(|one| one.answers(asked))?;
            Some((asked.clone(), answer.value.clone()))
        };
        Self { found: asked.iter().filter_map(value).collect(), missing: missing.into_iter().collect() }
    }
}

/// The EKS cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterAnswer {
    pub endpoint: String,
    /// The bundle of certificates, in base64.
    pub certificate_authority: String,
    /// `1.34`
    pub version: String,
    #[serde(default)]
    pub service_ipv4_cidr: Option<String>,
    #[serde(default)]
    pub service_ipv6_cidr: Option<String>,
    #[serde(default)]
    pub vpc_id: Option<String>,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerIdentity {
    pub account: String,
    pub arn: String,
}

/// An instance profile. Lists leave its tags out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceProfile {
    pub name: String,
    pub path: String,
    /// Names without their paths; IAM allows one.
    pub roles: Vec<String>,
    pub tags: Tags,
    pub created_at: Option<Timestamp>,
}

/// What an instance profile is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInstanceProfile {
    pub name: String,
    pub path: String,
    pub tags: Tags,
}

/// A message of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    pub receipt: String,
    pub body: String,
    pub sent_at: Option<Timestamp>,
}

/// How much the account may have of something.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    pub code: String,
    pub name: String,
    /// For on-demand and spot instances: virtual processors.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_answers_to_each_of_its_names() {
        let parameter = |name: &str, arn: Option<&str>, selector: Option<&str>, value: &str| FoundParameter {
            name: name.to_owned(),
            arn: arn.map(str::to_owned),
            selector: selector.map(str::to_owned),
            value: value.to_owned(),
        };
        let golden = "arn:aws:ssm:us-east-1:111122223333:parameter/golden";
        let shared = "arn:aws:ssm:us-east-1:444455556666:parameter/shared";
        let found = [
            parameter("/golden", Some(golden), None, "ami-latest"),
            parameter("/golden", Some(golden), Some(":3"), "ami-3"),
            parameter("/golden", Some(golden), Some(":tested"), "ami-tested"),
            parameter(shared, Some(shared), None, "ami-shared"),
            parameter("/golden/arm", None, None, "ami-arm"),
        ];
        let asked = ["/golden", "/golden:3", "/golden:tested", golden, shared, "/golden/arm", "/gone", "/golden:4"];
        let asked = asked.map(str::to_owned);
        let answers = ParameterAnswers::of(&asked, &found, ["/gone".to_owned()]);
        let values: Vec<Option<&str>> = asked.iter().map(|it| answers.found.get(it).map(String::as_str)).collect();
        let [latest, third, tested, shared, arm] =
            ["ami-latest", "ami-3", "ami-tested", "ami-shared", "ami-arm"].map(Some);
        assert_eq!(values, [latest, third, tested, latest, shared, arm, None, None]);
    }
}
