//! The cases that are folders.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use cutlist::adapters::aws::resolution::status::status;
use cutlist::adapters::aws::resolution::validation::{Verdict, look};
use cutlist::adapters::aws::resolution::{Resolution, Resolver};
use cutlist::api::ec2_node_class::EC2NodeClass;
use serde::Deserialize;
use serde_json::Value;

use super::account::{Account, Things};
use super::{at, block_on, drift, identity};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    /// What the API server says, where EKS does not.
    #[serde(default)]
    kubernetes_version: Option<String>,
    classes: Vec<EC2NodeClass>,
    account: Value,
    looks: Vec<Look>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Look {
    /// Seconds.
    at: i64,
    /// Codes by action.
    #[serde(default)]
    fail: BTreeMap<String, String>,
    /// A merge patch.
    #[serde(default)]
    account: Option<Value>,
    /// Merge patches by class; each makes a new generation.
    #[serde(default)]
    classes: BTreeMap<String, Value>,
    /// Merge patches by class: the definitions differ from what is applied. For this look and those after it.
    #[serde(default)]
    defined: BTreeMap<String, Value>,
    /// EC2 does not say what instances there are.
    #[serde(default)]
    instances_unknown: bool,
    /// The controller was started anew: nothing is remembered but what the classes say.
    #[serde(default)]
    restarted: bool,
}

#[test]
fn what_is_found_is_as_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ec2/resolution");
    let mut cases: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 8, "the cases are missing");
    let mut different = Vec::new();
    for case in cases {
        let text = std::fs::read_to_string(case.join("case.yaml")).unwrap();
        let mut value: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
        value.apply_merge().unwrap();
        let parsed: Case = serde_yaml::from_value(value).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        let found = block_on(played(parsed));
        let file = case.join("expected.txt");
        if update {
            std::fs::write(&file, &found).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != found {
            different.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(different.is_empty(), "other than expected; UPDATE=1 rewrites the files:\n{}", different.join("\n"));
}

async fn played(case: Case) -> String {
    let things = |value: &Value| serde_json::from_value::<Things>(value.clone()).unwrap();
    let mut described = case.account;
    let account = Account::new(things(&described));
    let identity = cutlist::adapters::aws::resolution::cluster::Identity {
        kubernetes_version: case.kubernetes_version.clone(),
        ..identity()
    };
    let mut resolver = Resolver::new(identity.clone());
    let mut classes = case.classes;
    let mut text = String::new();
    let launched_with = classes.clone();
    let mut defined: BTreeMap<String, Value> = BTreeMap::new();
    for look in case.looks {
        defined.extend(look.defined);
        if let Some(patch) = &look.account {
            json_patch::merge(&mut described, patch);
            *account.things.borrow_mut() = things(&described);
        }
        for (name, patch) in &look.classes {
            let class = classes.iter_mut().find(|class| class.metadata.name.as_ref() == Some(name)).unwrap();
            let mut value = serde_json::to_value(&*class).unwrap();
            json_patch::merge(&mut value, patch);
            *class = serde_json::from_value(value).unwrap();
            class.metadata.generation = class.metadata.generation.map(|generation| generation + 1);
        }
        if look.restarted {
            resolver = Resolver::new(identity.clone());
        }
        *account.failures.borrow_mut() = look.fail;
        let now = at(look.at);
        resolver.refresh(&account, &classes, true, now).await;
        writeln!(text, "=== {now}").unwrap();
        account.take_calls().iter().for_each(|call| writeln!(text, "> {call}").unwrap());
        for class in &mut classes {
            let facts = resolver.facts(class, now);
            let verdict = self::look(&class.spec, &facts).unwrap_or(Verdict::Passed);
            let written = status(class, &facts, &verdict, now);
            let is_news = class.status.as_ref() != Some(&written);
            class.status = Some(written);
            show(&mut text, class, &facts, is_news);
            let things = account.things.borrow();
            let launched_with = launched_with.iter().find(|it| it.metadata.name == class.metadata.name).unwrap();
            let patch = class.metadata.name.as_ref().and_then(|name| defined.get(name));
            drift::show(&mut text, launched_with, class, patch, &things.instances, !look.instances_unknown);
        }
        for (action, trouble) in resolver.troubles() {
            writeln!(text, "trouble {action}: since {}, {} times", trouble.since, trouble.failures).unwrap();
        }
    }
    text
}

fn show(text: &mut String, class: &EC2NodeClass, facts: &Resolution, is_news: bool) {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if is_news {
        writeln!(text, "--- {name}: status").unwrap();
        let mut status = class.status.clone().unwrap_or_default();
        let conditions = std::mem::take(&mut status.conditions);
        text.push_str(&serde_yaml::to_string(&status).unwrap());
        for it in conditions {
            let (of, since) = (it.observed_generation.unwrap_or_default(), it.last_transition_time.0);
            let reason = if it.reason == it.type_ { String::new() } else { format!(" {}", it.reason) };
            let message = if it.message.is_empty() { String::new() } else { format!(": {}", it.message) };
            writeln!(text, "{}={}{reason} (generation {of}, since {since}){message}", it.type_, it.status).unwrap();
        }
    } else {
        writeln!(text, "--- {name}: status as before").unwrap();
    }
    for one in &facts.unmatched {
        writeln!(text, "finds nothing: {}: {}", one.field, one.why).unwrap();
    }
}
