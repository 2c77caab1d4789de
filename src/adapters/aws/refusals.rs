//! Why AWS refused: EC2 encodes its reason, which is decoded where that is allowed; else the refusal names the action.

use serde::Deserialize;

use super::api::{ApiError, Ec2Api};
use super::failures::FailureClass;

/// What of a decoded message is said.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decoded {
    #[serde(default)]
    explicit_deny: bool,
    context: Context,
}

#[derive(Debug, Deserialize)]
struct Context {
    action: String,
    #[serde(default)]
    resource: String,
}

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
    let Decoded { explicit_deny, context } = serde_json::from_str(message).ok()?;
    let why = if explicit_deny {
        "a policy denies it explicitly, which may be one of the organization"
    } else {
        "no policy allows it; one that does may ask for a tag that is missing"
    };
    let on = if context.resource.is_empty() { String::new() } else { format!(" on {}", context.resource) };
    Some(format!("{} is denied{on}: {why}", context.action))
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
    }
}
