//! Reference pages under `schemas/`, written from what the program itself says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::CommandFactory;
use cutlist::adapters::operations::Metrics;
use cutlist::api::event_reason::EventReason;
use cutlist::api::settings::SettingsDocument;
use cutlist::cli::arguments::Arguments;
use cutlist::cli::exit::EXIT_CODES;
use cutlist::core::lifecycle::conditions::{WRITTEN, WrittenCondition};
use cutlist::core::plan::{CloudFactCode, NoteCode, ReasonCode, RiskCode};
use cutlist::ports::operations::Meter;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

fn schema<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Codes of plans, each with its meaning.
pub fn codes() -> String {
    let mut text =
        "# Codes in plans\n\nA code has one meaning and keeps it. Texts beside a code may change.\n".to_owned();
    for (title, schema) in [
        ("Reasons: why a step is taken, a pod stays pending, or a node is held back", schema::<ReasonCode>()),
        ("Notes: what to know beside the steps", schema::<NoteCode>()),
        ("Facts: what EC2 says of what is launched and replaced", schema::<CloudFactCode>()),
        ("Risks: what may go wrong for pods that move", schema::<RiskCode>()),
    ] {
        write!(text, "\n## {title}\n\n| code | meaning |\n|---|---|\n").unwrap();
        for code in schema["oneOf"].as_array().expect("each code has a meaning") {
            let meaning = in_one_line(code["description"].as_str().expect("each code has a meaning"));
            writeln!(text, "| `{}` | {meaning} |", code["const"].as_str().unwrap()).unwrap();
        }
    }
    text
}

/// Reasons of Kubernetes Events and conditions of objects, each with its meaning.
pub fn events() -> String {
    let mut text = "# Events and conditions\n\nWhat `cutlist run` writes on the objects concerned, for `kubectl describe` and `kubectl wait`. Names that \
                    Karpenter has too mean what Karpenter's mean. A name has one meaning and keeps it; the texts beside it may change.\n\n\
                    ## Reasons of Events\n\n| reason | meaning |\n|---|---|\n"
        .to_owned();
    let reasons = schema::<EventReason>();
    for reason in reasons["oneOf"].as_array().expect("each reason has a meaning") {
        let meaning = in_one_line(reason["description"].as_str().expect("each reason has a meaning"));
        writeln!(text, "| `{}` | {meaning} |", reason["const"].as_str().unwrap()).unwrap();
    }
    text.push_str("\n## Conditions\n\nThe reason `AnsweredEarlier` of a condition of an EC2NodeClass: it rests on what EC2 answered before, since it gives no answer now.\n\n| object | type | what it says where it is true |\n|---|---|---|\n");
    for WrittenCondition { kind, type_, meaning } in WRITTEN {
        writeln!(text, "| {kind} | `{type_}` | {} |", in_one_line(meaning)).unwrap();
    }
    text
}

/// Metrics as `/metrics` describes them.
pub fn metrics() -> String {
    let mut text = "# Metrics\n\n`cutlist run --listen ADDRESS:PORT` serves them at `/metrics`. Names that begin with `karpenter_` mean what Karpenter's mean.\n\n\
                    | name | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    // Those with labels are described once there is one of them.
    let metrics = Metrics::default();
    metrics.claim_created("", "");
    metrics.claim_disrupted("", "");
    metrics.decided("", "");
    metrics.revision("");
    metrics.plan("");
    metrics.fulfilled(1, 1);
    metrics.doubts(["pods"].into_iter(), 0);
    metrics.notified("", "");
    metrics.calls("", "", 1);
    metrics.cloud_calls("", "", 1);
    let described = metrics.text();
    let mut meaning = String::new();
    for line in described.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            meaning = in_one_line(help.split_once(' ').unwrap().1);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            let labels = labels_of(&described, &name).iter().map(|label| format!("`{label}`")).collect::<Vec<_>>();
            writeln!(text, "| `{name}` | {kind} | {} | {meaning} |", labels.join(", ")).unwrap();
        }
    }
    text
}

/// The labels of a metric's samples, without those of buckets.
fn labels_of<'t>(described: &'t str, name: &str) -> Vec<&'t str> {
    let sample = described.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let labels = sample.and_then(|rest| rest.split_once('}')).map_or("", |(labels, _)| labels);
    labels.split(',').filter_map(|label| label.split_once('=')).map(|(label, _)| label).collect()
}

/// Every setting of `cutlist.yaml`.
pub fn settings() -> String {
    let schema = schema::<SettingsDocument>();
    let mut text = "# Settings\n\n`cutlist.yaml` at the root of the definitions, `apiVersion: cutlist.dev/v1alpha1`, `kind: Settings`. All of it is optional. \
                    Its JSON Schema is `cutlist.json`.\n\nThe root is the folder that is named: the PATH of `plan`, or that of a cluster of \
                    `preview --definitions`. Where it has no `cutlist.yaml` there are no settings: one in a folder above or below counts \
                    only where that folder is named.\n\n| under `spec` | default | meaning |\n|---|---|---|\n"
        .to_owned();
    settings_of(&schema, &schema["properties"]["spec"], "", None, &mut text);
    text
}

/// The rows of an object and of what is in it. `default`: what the object around it has for this one.
fn settings_of(root: &Value, schema: &Value, path: &str, default: Option<&Value>, text: &mut String) {
    let object = resolved(root, schema);
    let Some(properties) = object["properties"].as_object() else { return };
    let of_object = default.or_else(|| schema.get("default"));
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let default = of_object.and_then(|it| it.get(name)).or_else(|| property.get("default"));
        let target = resolved(root, property);
        let meaning = property["description"].as_str().or_else(|| target["description"].as_str()).unwrap_or_default();
        if target.get("properties").is_some() {
            if !meaning.is_empty() {
                writeln!(text, "| `{path}` | | {} |", in_one_line(meaning)).unwrap();
            }
            settings_of(root, property, &path, default, text);
            continue;
        }
        let values: Vec<String> = values_of(target).iter().map(|value| format!("`{value}`")).collect();
        let values = if values.is_empty() { String::new() } else { format!(" One of {}.", values.join(", ")) };
        let default =
            default.filter(|it| !it.is_null() && **it != serde_json::json!({}) && **it != serde_json::json!([]));
        let default = default.map_or_else(String::new, |it| format!("`{}`", it.to_string().trim_matches('"')));
        writeln!(text, "| `{path}` | {default} | {}{values} |", in_one_line(meaning)).unwrap();
        if let Some(item) = target.get("items") {
            settings_of(root, item, &format!("{path}[]"), None, text);
        }
    }
}

/// What a reference stands for; of a field that may be left out, what it is where it is not.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let choices = schema["anyOf"].as_array().and_then(|choices| choices.iter().find(|it| it.get("$ref").is_some()));
    let schema = choices.unwrap_or(schema);
    match schema["$ref"].as_str() {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).expect("references lead somewhere"),
        None => schema,
    }
}

fn values_of(schema: &Value) -> Vec<&str> {
    let one_of = schema["oneOf"].as_array().into_iter().flatten().filter_map(|it| it["const"].as_str());
    let listed = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    listed.chain(one_of).collect()
}

/// `--help` of every command, and what each ends with.
pub fn commands() -> String {
    let mut text = "# Commands\n\n## Exit codes\n\n| command | code | meaning |\n|---|---|---|\n".to_owned();
    for (command, code, meaning) in EXIT_CODES {
        writeln!(text, "| {command} | {code} | {meaning} |").unwrap();
    }
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    environment(&command, &mut text);
    help_of(&mut command, &mut text);
    text
}

/// Variables that are read beside those which stand for an option.
const VARIABLES: [(&str, &str); 12] = [
    ("CUTLIST_VAR_NAME", "The value of `${NAME}` in definitions, for any NAME."),
    ("CUTLIST_FORGE_TOKEN", "The token for the forge, unless `--token-variable` names another variable."),
    ("CUTLIST_NOTIFY_SLACK_URL", "The address that `--notify-slack-file` would hold."),
    ("CUTLIST_NOTIFY_WEBHOOK_URL", "The address that `--notify-webhook-file` would hold."),
    (
        "KUBECONFIG",
        "The kubeconfig, where `--kubeconfig` names none; else `~/.kube/config`, else the service account of the pod.",
    ),
    ("POD_NAME", "Who holds the lease of `run`; else HOSTNAME."),
    ("USER", "Who approves, where neither the API server nor `--by` says it."),
    ("RUST_LOG", "What `run --verbose` logs."),
    ("NO_COLOR, CLICOLOR_FORCE", "Text without colours; with colours where it is no terminal."),
    ("HTTPS_PROXY, HTTP_PROXY, NO_PROXY", "Proxies, in lower case as well."),
    ("SSL_CERT_FILE", "The certificates that HTTPS is checked with."),
    ("AWS_*", "Credentials, region and endpoints, as the AWS SDK takes them."),
];

fn environment(command: &clap::Command, text: &mut String) {
    text.push_str("\n## Environment\n\nAn option that is typed counts more than its variable.\n\n| variable | stands for |\n|---|---|\n");
    let mut options: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for command in command.get_subcommands() {
        for argument in command.get_arguments() {
            if let (Some(variable), Some(long)) = (argument.get_env(), argument.get_long()) {
                let of_variable = options.entry(variable.to_string_lossy().into_owned()).or_default();
                of_variable.insert(format!("`{} --{long}`", command.get_name()));
            }
        }
    }
    for (variable, options) in options {
        let options: Vec<String> = options.into_iter().collect();
        writeln!(text, "| `{variable}` | {} |", options.join(", ")).unwrap();
    }
    for (variable, meaning) in VARIABLES {
        writeln!(text, "| `{variable}` | {meaning} |").unwrap();
    }
}

fn help_of(command: &mut clap::Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let help = command.clone().term_width(100).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()).unwrap();
    for command in command.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        help_of(command, text);
    }
}
