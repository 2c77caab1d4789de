//! The IAM policy, made of the table of actions: what may be changed bears the cluster's tag. `deploy/iam/policy.json` is a copy of it.
//! Conditions as in the sample policies of Karpenter's AWS provider 1.14, where it has the action.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::actions::{ACTIONS, Scope};

/// Statements in the order of the file.
const STATEMENTS: &[Scope] = &[
    Scope::SeeWhatEc2Sells,
    Scope::SeePrices,
    Scope::SeeQuotas,
    Scope::ReadImageAliases,
    Scope::FindTheCluster,
    Scope::ExplainRefusals,
    Scope::LaunchFromWhatIsThere,
    Scope::LaunchFromOwnTemplates,
    Scope::CreateOnlyWithTheClustersTags,
    Scope::TagWhileCreating,
    Scope::NameInstancesLater,
    Scope::RemoveOnlyItsOwn,
    Scope::HearOfInterruptions,
    Scope::GiveNodesTheirRole,
    Scope::FindInstanceProfiles,
    Scope::CreateInstanceProfiles,
    Scope::ChangeOnlyItsOwnInstanceProfiles,
];

const REQUESTED: &str = "aws:RequestTag/kubernetes.io/cluster/${CLUSTER}";
const OWNED: &str = "aws:ResourceTag/kubernetes.io/cluster/${CLUSTER}";
const PROFILES: &str = "arn:aws:iam::${ACCOUNT}:instance-profile/*";

/// The policy with `${REGION}`, `${ACCOUNT}` and `${CLUSTER}` to be filled in.
pub fn policy() -> Value {
    let statements: Vec<Value> = STATEMENTS.iter().map(|scope| statement(*scope)).collect();
    json!({ "Version": "2012-10-17", "Statement": statements })
}

fn statement(scope: Scope) -> Value {
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

fn name(scope: Scope) -> String {
    // IAM's own spelling of the service stands in the name that the file has always had.
    format!("{scope:?}").replace("Ec2", "EC2")
}

fn resources(scope: Scope) -> Vec<String> {
    let ec2 = |kinds: &[&str]| kinds.iter().map(|kind| format!("arn:aws:ec2:${{REGION}}:*:{kind}/*")).collect();
    let one = |arn: &str| vec![arn.to_owned()];
    match scope {
        Scope::SeeWhatEc2Sells | Scope::SeePrices | Scope::SeeQuotas | Scope::ExplainRefusals => one("*"),
        Scope::ReadImageAliases => one("arn:aws:ssm:${REGION}::parameter/aws/service/*"),
        Scope::FindTheCluster => one("arn:aws:eks:${REGION}:${ACCOUNT}:cluster/${CLUSTER}"),
        Scope::LaunchFromWhatIsThere => {
            let mut resources =
                vec!["arn:aws:ec2:${REGION}::image/*".to_owned(), "arn:aws:ec2:${REGION}::snapshot/*".to_owned()];
            let others: Vec<String> = ec2(&["capacity-reservation", "placement-group", "security-group", "subnet"]);
            resources.extend(others);
            resources
        }
        Scope::LaunchFromOwnTemplates => ec2(&["launch-template"]),
        Scope::CreateOnlyWithTheClustersTags | Scope::TagWhileCreating => {
            ec2(&["fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume"])
        }
        Scope::NameInstancesLater => ec2(&["instance"]),
        Scope::RemoveOnlyItsOwn => ec2(&["instance", "launch-template"]),
        Scope::HearOfInterruptions => one("arn:aws:sqs:${REGION}:${ACCOUNT}:${CLUSTER}"),
        Scope::GiveNodesTheirRole => one("arn:aws:iam::${ACCOUNT}:role/*-${CLUSTER}"),
        Scope::FindInstanceProfiles | Scope::CreateInstanceProfiles | Scope::ChangeOnlyItsOwnInstanceProfiles => {
            one(PROFILES)
        }
    }
}

fn equal(keys: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, &'static str> {
    keys.iter().copied().collect()
}

fn condition(scope: Scope) -> Option<Value> {
    let pool = |of: &str| json!({ format!("aws:{of}Tag/karpenter.sh/nodepool"): "*" });
    Some(match scope {
        Scope::SeeWhatEc2Sells => json!({ "StringEquals": equal(&[("aws:RequestedRegion", "${REGION}")]) }),
        Scope::LaunchFromOwnTemplates | Scope::RemoveOnlyItsOwn => {
            json!({ "StringEquals": equal(&[(OWNED, "owned")]), "StringLike": pool("Resource") })
        }
        Scope::CreateOnlyWithTheClustersTags => json!({
            "StringEquals": equal(&[(REQUESTED, "owned"), ("aws:RequestTag/eks:eks-cluster-name", "${CLUSTER}")]),
            "StringLike": pool("Request"),
        }),
        Scope::TagWhileCreating => json!({ "StringEquals": {
            REQUESTED: "owned",
            "aws:RequestTag/eks:eks-cluster-name": "${CLUSTER}",
            "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"],
        }, "StringLike": pool("Request") }),
        Scope::NameInstancesLater => json!({
            "StringEquals": equal(&[(OWNED, "owned")]),
            "StringLike": pool("Resource"),
            "ForAllValues:StringEquals": { "aws:TagKeys": ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim"] },
        }),
        Scope::GiveNodesTheirRole => {
            json!({ "StringEquals": { "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"] } })
        }
        Scope::CreateInstanceProfiles => json!({ "StringEquals": equal(&[
            (REQUESTED, "owned"),
            ("aws:RequestTag/eks:eks-cluster-name", "${CLUSTER}"),
            ("aws:RequestTag/topology.kubernetes.io/region", "${REGION}"),
        ]), "StringLike": { "aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*" } }),
        Scope::ChangeOnlyItsOwnInstanceProfiles => json!({ "StringEquals": equal(&[
            (OWNED, "owned"),
            ("aws:ResourceTag/topology.kubernetes.io/region", "${REGION}"),
        ]), "StringLike": { "aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*" } }),
        Scope::SeePrices
        | Scope::SeeQuotas
        | Scope::ReadImageAliases
        | Scope::FindTheCluster
        | Scope::ExplainRefusals
        | Scope::LaunchFromWhatIsThere
        | Scope::HearOfInterruptions
        | Scope::FindInstanceProfiles => return None,
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
        let scopes: BTreeSet<Scope> = ACTIONS.iter().flat_map(|action| action.scopes()).copied().collect();
        assert_eq!(scopes, STATEMENTS.iter().copied().collect());
    }
}
