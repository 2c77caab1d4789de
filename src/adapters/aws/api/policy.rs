//! The IAM policy, made of the table of actions: what may be changed bears the cluster's tag. `deploy/iam/policy.json` is a copy of it.
//! Conditions as in the sample policies of Karpenter's AWS provider 1.14, where it has the action.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::actions::{ACTIONS, ActionScope};

/// Statements in the order of the file.
const STATEMENTS: &[ActionScope] = &[
    ActionScope::SeeWhatEc2Sells,
    ActionScope::SeePrices,
    ActionScope::SeeQuotas,
    ActionScope::ReadImageAliases,
    ActionScope::FindTheCluster,
    ActionScope::ExplainRefusals,
    ActionScope::LaunchFromWhatIsThere,
    ActionScope::LaunchFromOwnTemplates,
    ActionScope::CreateOnlyWithTheClustersTags,
    ActionScope::TagWhileCreating,
    ActionScope::NameInstancesLater,
    ActionScope::RemoveOnlyItsOwn,
    ActionScope::HearOfInterruptions,
    ActionScope::GiveNodesTheirRole,
    ActionScope::FindInstanceProfiles,
    ActionScope::CreateInstanceProfiles,
    ActionScope::ChangeOnlyItsOwnInstanceProfiles,
];

const REQUESTED: &str = "aws:RequestTag/kubernetes.io/cluster/${CLUSTER}";
const OWNED: &str = "aws:ResourceTag/kubernetes.io/cluster/${CLUSTER}";
const PROFILES: &str = "arn:aws:iam::${ACCOUNT}:instance-profile/*";

/// The policy with `${REGION}`, `${ACCOUNT}` and `${CLUSTER}` to be filled in.
pub fn policy() -> Value {
    let statements: Vec<Value> = STATEMENTS.iter().map(|scope| statement(*scope)).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}

fn statement(scope: ActionScope) -> Value {
    let mut actions: Vec<&str> =
        ACTIONS.iter().filter(|action| action.scopes().contains(&scope)).map(|action| action.name()).collect();
    actions.sort_unstable();
    let mut statement = serde_json::Map::new();
    statement.insert("Sid".to_owned(), name(scope).into());
    statement.insert("Effect".to_owned(), "Allow".into());
    statement.insert("Action".to_owned(), actions.into());
    statement.insert("Resource".to_owned(), resources(scope).into());
    if let Some(condition) = condition(scope) {
        statement.insert("Condition".to_owned(), condition);
    }
    statement.into()
}

fn name(scope: ActionScope) -> String {
    // IAM's own spelling of the service stands in the name that the file has always had.
    format!("{scope:?}").replace("Ec2", "EC2")
}

fn resources(scope: ActionScope) -> Vec<String> {
    let ec2 = |kinds: &[&str]| kinds.iter().map(|kind| format!("arn:aws:ec2:${{REGION}}:*:{kind}/*")).collect();
    let one = |arn: &str| vec![arn.to_owned()];
    match scope {
        ActionScope::SeeWhatEc2Sells
        | ActionScope::SeePrices
        | ActionScope::SeeQuotas
        | ActionScope::ExplainRefusals => one("*"),
        ActionScope::ReadImageAliases => one("arn:aws:ssm:${REGION}::parameter/aws/service/*"),
        ActionScope::FindTheCluster => one("arn:aws:eks:${REGION}:${ACCOUNT}:cluster/${CLUSTER}"),
        ActionScope::LaunchFromWhatIsThere => {
            let mut resources =
                vec!["arn:aws:ec2:${REGION}::image/*".to_owned(), "arn:aws:ec2:${REGION}::snapshot/*".to_owned()];
            let others: Vec<String> = ec2(&["capacity-reservation", "placement-group", "security-group", "subnet"]);
            resources.extend(others);
            resources
        }
        ActionScope::LaunchFromOwnTemplates => ec2(&["launch-template"]),
        ActionScope::CreateOnlyWithTheClustersTags | ActionScope::TagWhileCreating => {
            ec2(&["fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume"])
        }
        ActionScope::NameInstancesLater => ec2(&["instance"]),
        ActionScope::RemoveOnlyItsOwn => ec2(&["instance", "launch-template"]),
        ActionScope::HearOfInterruptions => one("arn:aws:sqs:${REGION}:${ACCOUNT}:${CLUSTER}"),
        ActionScope::GiveNodesTheirRole => one("arn:aws:iam::${ACCOUNT}:role/*-${CLUSTER}"),
        ActionScope::FindInstanceProfiles
        | ActionScope::CreateInstanceProfiles
        | ActionScope::ChangeOnlyItsOwnInstanceProfiles => one(PROFILES),
    }
}

fn equal(keys: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, &'static str> {
    keys.iter().copied().collect()
}

fn condition(scope: ActionScope) -> Option<Value> {
    let pool = |of: &str| json!({ format!("aws:{of}Tag/karpenter.sh/nodepool"): "*" });
    Some(match scope {
        ActionScope::SeeWhatEc2Sells => json!({ "StringEquals": equal(&[("aws:RequestedRegion", "${REGION}")]) }),
        ActionScope::LaunchFromOwnTemplates | ActionScope::RemoveOnlyItsOwn => {
            json!({ "StringEquals": equal(&[(OWNED, "owned")]), "StringLike": pool("Resource") })
        }
        ActionScope::CreateOnlyWithTheClustersTags => json!({
            "StringEquals": equal(&[(REQUESTED, "owned"), ("aws:RequestTag/eks:eks-cluster-name", "${CLUSTER}")]),
            "StringLike": pool("Request"),
        }),
        ActionScope::TagWhileCreating => json!({ "StringEquals": {
            REQUESTED: "owned",
            "aws:RequestTag/eks:eks-cluster-name": "${CLUSTER}",
            "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
        }, "StringLike": pool("Request") }),
        ActionScope::NameInstancesLater => json!({
            "StringEquals": equal(&[(OWNED, "owned")]),
            "StringLike": pool("Resource"),
            "ForAllValues:StringEquals": { "aws:TagKeys": ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim"] },
        }),
        ActionScope::GiveNodesTheirRole => {
            json!({ "StringEquals": { "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"] } })
        }
        ActionScope::CreateInstanceProfiles => json!({ "StringEquals": equal(&[
            (REQUESTED, "owned"),
            ("aws:RequestTag/eks:eks-cluster-name", "${CLUSTER}"),
            ("aws:RequestTag/topology.kubernetes.io/region", "${REGION}"),
        ]), "StringLike": { "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*" } }),
        ActionScope::ChangeOnlyItsOwnInstanceProfiles => json!({ "StringEquals": equal(&[
            (OWNED, "owned"),
            ("aws:ResourceTag/topology.kubernetes.io/region", "${REGION}"),
        ]), "StringLike": { "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*" } }),
        ActionScope::SeePrices
        | ActionScope::SeeQuotas
        | ActionScope::ReadImageAliases
        | ActionScope::FindTheCluster
        | ActionScope::ExplainRefusals
        | ActionScope::LaunchFromWhatIsThere
        | ActionScope::HearOfInterruptions
        | ActionScope::FindInstanceProfiles => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_action_is_allowed_somewhere_and_nothing_else_is() {
        let policy = policy();
        let statements = policy["Statement"].as_array().unwrap();
        let allowed = |statement: &Value| -> Vec<String> {
            statement["Action"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        };
        let found: BTreeSet<String> = statements.iter().flat_map(allowed).collect();
        let needed: BTreeSet<String> = ACTIONS
            .iter()
            .filter(|action| !action.scopes().is_empty())
            .map(|action| action.name().to_owned())
            .collect();
        assert_eq!(found, needed);
        assert!(statements.iter().all(|statement| !allowed(statement).is_empty()), "a statement allows nothing");
        let scopes: BTreeSet<ActionScope> = ACTIONS.iter().flat_map(|action| action.scopes()).copied().collect();
        assert_eq!(scopes, STATEMENTS.iter().copied().collect());
    }
}
