//! Why AWS refused: EC2 encodes its reason, which is decoded where that is allowed; else the refusal names the action.

use serde::Deserialize;

use super::api::{ApiError, Ec2Api};
use super::failures::FailureClass;
use crate::api::keys;

/// What of a decoded message is said.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decoded {
    #[serde(default)]
    explicit_deny: bool,
    #[serde(default)]
    matched_statements: Items<Statement>,
    context: Context,
}

/// A list, as AWS writes it there.
#[derive(Debug, Deserialize)]
struct Items<T> {
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default)]
    statement_id: String,
}

/// What a policy may ask for of the request.
#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(default)]
    key: String,
}

#[derive(Debug, Deserialize)]
struct Context {
    action: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    conditions: Items<Condition>,
}

/// The beginning of a condition on a tag of what is to be made.
const REQUEST_TAG: &str = "aws:RequestTag/";
/// The tags without which the policy in `deploy/iam` lets nothing be made, the cluster's by how it begins.
const ASKED_FOR: [&str; 3] = [keys::CLUSTER_TAG_PREFIX, keys::CLUSTER_NAME_TAG, keys::NODE_POOL];

/// A failure for people: of a refusal the action and the resource, if they can be learnt.
pub async fn explain(api: &impl Ec2Api, error: &ApiError) -> String {
    let Some(encoded) = error.encoded_message().filter(|_| error.class == FailureClass::Denied) else {
        return error.text();
    };
    match api.decode_authorization_message(encoded).await {
        Ok(message) => decoded(&message).unwrap_or_else(|| error.text()),
        Err(refused) if refused.class == FailureClass::Denied => {
            format!("{} (with {} it would say on what)", error.text(), refused.action)
        }
        Err(_) => error.text(),
    }
}

fn decoded(message: &str) -> Option<String> {
    let Decoded { explicit_deny, matched_statements, context } = serde_json::from_str(message).ok()?;
    let statement = matched_statements.items.into_iter().map(|it| it.statement_id).find(|id| !id.is_empty());
    let why = match (explicit_deny, statement) {
        (true, Some(statement)) => {
            format!("statement {statement} of a policy denies it explicitly, which may be one of the organization")
        }
        (true, None) => "a policy denies it explicitly, which may be one of the organization".to_owned(),
        (false, _) => format!("no policy allows it; {}", missing_tags(&context.conditions.items)),
    };
    let on = if context.resource.is_empty() { String::new() } else { format!(" on {}", context.resource) };
    Some(format!("{} is denied{on}: {why}", context.action))
}

/// Which of the tags that the policy asks for the request does not have.
fn missing_tags(conditions: &[Condition]) -> String {
    let tags: Vec<&str> = conditions.iter().filter_map(|it| it.key.strip_prefix(REQUEST_TAG)).collect();
    let lacking: Vec<&str> =
        ASKED_FOR.into_iter().filter(|asked| !tags.iter().any(|tag| tag.starts_with(asked))).collect();
    if tags.is_empty() {
        return "one that does may ask for a tag that is missing".to_owned();
    }
    match lacking.is_empty() {
        true => format!("one that does may ask for a tag beside {}", tags.join(", ")),
        false => format!("one that does may ask for the tag {}, which is missing", lacking.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_refusal_names_action_and_resource() {
        let message = |explicit: bool| {
            format!(
                r#"{{"allowed":false,"explicitDeny":{explicit},"matchedStatements":{{"items":[]}},"failures":{{"items":[]}},
                   "context":{{"principal":{{"id":"A"}},"action":"ec2:RunInstances",
                   "resource":"arn:aws:ec2:us-east-1:1:volume/*","conditions":{{"items":[]}}}}}}"#
            )
        };
        assert_eq!(
            decoded(&message(true)).unwrap(),
            "ec2:RunInstances is denied on arn:aws:ec2:us-east-1:1:volume/*: a policy denies it explicitly, which may be one of \
             the organization"
        );
        assert!(decoded(&message(false)).unwrap().contains("no policy allows it"));
        assert_eq!(decoded("not JSON"), None);
        let of = |statements: &str, deny: bool, tags: &[&str]| {
            let conditions: Vec<String> =
                tags.iter().map(|tag| format!(r#"{{"key":"{tag}","values":{{"items":[{{"value":"x"}}]}}}}"#)).collect();
            decoded(&format!(
                r#"{{"explicitDeny":{deny},"matchedStatements":{{"items":[{statements}]}},"context":{{"action":"ec2:RunInstances",
                   "conditions":{{"items":[{}]}}}}}}"#,
                conditions.join(",")
            ))
            .unwrap()
        };
        let denied = of(r#"{"statementId":"NoSpot","effect":"DENY"}"#, true, &[]);
        assert!(denied.contains("statement NoSpot of a policy denies it explicitly"), "{denied}");
        let two = ["aws:RequestTag/kubernetes.io/cluster/demo", "aws:RequestTag/eks:eks-cluster-name", "aws:Region"];
        assert!(of("", false, &two).ends_with("the tag karpenter.sh/nodepool, which is missing"));
        let all = [two[0], two[1], "aws:RequestTag/karpenter.sh/nodepool"];
        assert!(
            of("", false, &all).contains("a tag beside kubernetes.io/cluster/demo, eks:eks-cluster-name, karpenter")
        );
    }
}
