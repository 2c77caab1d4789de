//! The policy for AWS gives nothing away: it names its actions, and what it may change belongs to the cluster.

use serde_json::Value;

use super::read;

/// The longest policy that IAM takes, without white space.
const LENGTH_MAX: usize = 6144;

/// Beginnings of actions that change nothing.
const READING: &[&str] = &["Decode", "Describe", "Get", "List", "Receive"];

/// Statements that change something that is no tag's owner, and why they are narrow enough.
const WITHOUT_TAGS: &[(&str, &str)] = &[
    ("LaunchFromWhatIsThere", "an image or a subnet is used, not changed; what is created is in other statements"),
    ("HearOfInterruptions", "one queue, by name"),
    ("GiveNodesTheirRole", "roles by name, to EC2 only"),
];

#[test]
fn the_policy_names_what_it_allows() {
    let policy: Value = serde_json::from_str(&read("iam/policy.json")).unwrap();
    assert!(serde_json::to_string(&policy).unwrap().len() <= LENGTH_MAX);
    for statement in policy["Statement"].as_array().unwrap() {
        assert_eq!(statement["Effect"], "Allow");
        let name = statement["Sid"].as_str().unwrap();
        let actions = texts(&statement["Action"]);
        assert!(actions.iter().all(|action| !action.contains('*')), "{name}: {actions:?}");
        let reads = |action: &&str| READING.iter().any(|verb| action.split(':').nth(1).unwrap().starts_with(verb));
        if actions.iter().all(reads) {
            continue;
        }
        assert!(!texts(&statement["Resource"]).contains(&"*"), "{name} may change everything");
        let conditions = statement["Condition"]["StringEquals"].as_object();
        let is_tagged = conditions.is_some_and(|conditions| {
            conditions.keys().any(|key| key.contains("Tag/kubernetes.io/cluster/${CLUSTER}"))
        });
        let is_excused = WITHOUT_TAGS.iter().any(|(excused, _)| *excused == name);
        assert!(is_tagged != is_excused, "{name}: what it may change belongs to the cluster, or has a reason");
    }
}

/// A text, or a list of them.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect(),
        other => panic!("no text: {other}"),
    }
}
