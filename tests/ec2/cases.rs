//! The cases that are folders.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use cutlist::adapters::aws::drift::{self, LiveDrift, Strictness, Subject};
use cutlist::adapters::aws::resolution::status::status;
use cutlist::adapters::aws::resolution::validation::{Verdict, look};
use cutlist::adapters::aws::resolution::{Resolution, Resolver};
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::core::catalog::{Catalog, for_node_class};
use serde::Deserialize;
use serde_json::Value;

use super::account::{Account, Things};
use super::{at, block_on, identity};

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
    for look in case.looks {
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
            show_instances(&mut text, class, &facts, &account.things.borrow());
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

fn show_instances(text: &mut String, class: &EC2NodeClass, facts: &Resolution, things: &Things) {
    let catalog = Catalog::built_in("us-east-1").unwrap();
    let of_class =
        |tags: &BTreeMap<String, String>| tags.get("karpenter.k8s.aws/ec2nodeclass") == class.metadata.name.as_ref();
    for instance in things.instances.iter().filter(|instance| of_class(&instance.tags)) {
        let instance_type = catalog.instance_types.iter().find(|one| one.name == instance.instance_type);
        let instance_type = instance_type.map(|one| for_node_class(one, &class.spec));
        let labels = BTreeMap::new();
        let subject = Subject { instance, instance_type: instance_type.as_ref(), labels: &labels };
        let said = |found: &LiveDrift| match found.first() {
            Some((compared, how)) => format!("{}: {how}", compared.reason()),
            None => "no drift".to_owned(),
        };
        let found = drift::compare(subject, facts, Strictness::default());
        let strictly = drift::compare(subject, facts, Strictness { extra_security_groups_drift: true });
        writeln!(text, "{}: {}", instance.id, said(&found)).unwrap();
        if strictly.first() != found.first() {
            writeln!(text, "{}, strictly: {}", instance.id, said(&strictly)).unwrap();
        }
        for (compared, why) in found.unknown() {
            writeln!(text, "{}: {} not compared: {why}", instance.id, compared.reason()).unwrap();
        }
        if !found.extra_groups.is_empty() {
            writeln!(text, "{}: beside the class's: {}", instance.id, found.extra_groups.join(", ")).unwrap();
        }
    }
}
