//! Generated files that are committed must be what the types produce. `UPDATE=1` (`make update-golden`) rewrites them.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files and the environment")]

#[path = "generated/pages.rs"]
mod pages;

use std::fmt::Write;
use std::path::Path;

use cutlist::adapters::aws::api::policy::policy;
use cutlist::adapters::kubernetes::permissions::{Mode, PERMISSIONS, Permission};
use cutlist::api::cloud_facts::CloudFacts;
use cutlist::api::definitions;
use cutlist::api::image_lock::ImageLockDocument;
use cutlist::api::notification::Notification;
use cutlist::api::preview::Preview;
use cutlist::api::scenario::ScenarioDocument;
use cutlist::api::settings::SettingsDocument;
use cutlist::api::signing_policy::SigningPolicyDocument;
use cutlist::cli::FileKind;
use cutlist::core::plan::Plan;
use cutlist::core::plan::calendar::Calendar;
use cutlist::core::plan::simulation::Simulation;
use cutlist::core::prepare::buffers::{PODS_MAX, PODS_OF_ALL_MAX};
use cutlist::core::prepare::topology_spread::SERVICES_MAX;
use cutlist::core::scheduler::volumes::ALTERNATIVES_MAX;
use cutlist::core::snapshot::collect::OBJECTS_MAX;
use cutlist::core::snapshot::kept;
use cutlist::core::snapshot::kinds::NAME_BYTES_MAX;
use cutlist::core::snapshot::limits::LIMITS as OF_A_POD;
use cutlist::core::snapshot::unpack::{OBJECT_BYTES_MAX, UNPACKED_BYTES_MAX, UNPACKED_TEXT_BYTES_MAX};
use cutlist::definitions::rules::{self, explained};
use cutlist::render::diagnostics::LintReport;
use schemars::{JsonSchema, SchemaGenerator};

/// Makes the text of a file.
type Make = fn() -> String;

/// Where each schema is kept, and what makes it.
const SCHEMAS: &[(&str, Make)] = &[
    ("schemas/catalog.json", || schema::<cutlist::core::catalog::Catalog>("Cutlist catalog, version 1")),
    ("schemas/lint.json", || schema::<LintReport>("Findings of cutlist lint, version 1")),
    ("schemas/cutlist.json", || schema::<SettingsDocument>("cutlist.yaml")),
    ("schemas/cloud-facts.json", || schema::<CloudFacts>("Cutlist facts of EC2, version 1")),
    ("schemas/image-lock.json", || schema::<ImageLockDocument>("cutlist.lock")),
    ("schemas/notification.json", || schema::<Notification>("Cutlist notification, version 1")),
    ("schemas/signing-policy.json", || schema::<SigningPolicyDocument>("Cutlist signing policy, version v1alpha1")),
    ("schemas/scenario.json", || schema::<ScenarioDocument>("scenario.yaml")),
    ("schemas/preview.json", || schema::<Preview>("Cutlist preview, version 1")),
    ("schemas/plan.json", || schema::<Plan>("Cutlist plan, version 1")),
    ("schemas/calendar.json", || schema::<Calendar>("Cutlist calendar, version 1")),
    ("schemas/simulation.json", || schema::<Simulation>("Cutlist simulation, version 1")),
];

/// The JSON Schema of a published form, 2020-12.
fn schema<T: JsonSchema>(title: &str) -> String {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    serde_json::to_string_pretty(&schema).unwrap() + "\n"
}

/// Every generated file: its path, and what should be in it.
fn generated() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = SCHEMAS.iter().map(|(path, make)| ((*path).to_owned(), make())).collect();
    let mut stream = String::new();
    for definition in definitions::all() {
        let (name, text) = (definitions::file_name(&definition), serde_yaml::to_string(&definition).unwrap());
        write!(stream, "---\n{text}").unwrap();
        // Charts and Kustomize bases read nothing outside their own folder, so each has a copy.
        files.extend(["schemas/crds", "deploy/chart/crds"].map(|folder| (format!("{folder}/{name}"), text.clone())));
    }
    files.push(("deploy/kustomize/base/crds.yaml".to_owned(), stream));
    files.extend(roles());
    files.push(("deploy/iam/policy.json".to_owned(), serde_json::to_string_pretty(&policy()).unwrap() + "\n"));
    files.push(("schemas/snapshot.md".to_owned(), snapshot()));
    files.push(("schemas/limits.md".to_owned(), limits()));
    files.push(("schemas/rules.md".to_owned(), rules_of_lint()));
    files.push(("schemas/codes.md".to_owned(), pages::codes()));
    files.push(("schemas/commands.md".to_owned(), pages::commands()));
    files.push(("schemas/events.md".to_owned(), pages::events()));
    files.push(("schemas/metrics.md".to_owned(), pages::metrics()));
    files.push(("schemas/settings.md".to_owned(), pages::settings()));
    files.push(("deploy/chart/templates/policies.yaml".to_owned(), policies()));
    files
}

/// What a written snapshot has of each kind.
fn snapshot() -> String {
    let mut text = "# What is in a snapshot\n\nA file that `cutlist snapshot` wrote can be shown to others: it has these fields, and nothing else. \
                    A field stands for all that is in it. Left out are, for example, environment variables, commands, images, Secrets, \
                    ConfigMaps, addresses, user data, roles and tags.\n\nNames and labels stay as they are. Of hashes over a class, user data and all, \
                    three digits stay (`cutlist.dev/ec2nodeclass-hash`, `karpenter.k8s.aws/ec2nodeclass-hash`, `cutlist.dev/hash-before-redaction` of an EC2NodeClass, and what is in \
                    `cutlist.dev/early-ends`, `cutlist.dev/refused-nodes` and `cutlist.dev/rollout-failures`): a plan sees by them that a class is another one, but for one change in 4,096, and of wrong \
                    guesses at what is in it as many look right. That hides no secret of which there are only some thousands. Hashes over a pool stay as they are: they cover annotations of its nodes. Keep no secrets there.\n\nThe table is generated \
                    (`make update-golden`), and a test puts a mark into every field of every kind to see that only these come out.\n".to_owned();
    write!(text, "\n## Every kind\n\n").unwrap();
    kept::METADATA.iter().for_each(|path| writeln!(text, "- `{path}`").unwrap());
    write!(text, "\n## Annotations\n\n").unwrap();
    let mut annotations = kept::ANNOTATIONS.to_vec();
    annotations.sort_unstable();
    annotations.iter().for_each(|annotation| writeln!(text, "- `{annotation}`").unwrap());
    for (kind, _) in kept::KINDS {
        write!(text, "\n## {kind}\n\n").unwrap();
        let paths = kept::paths(kind);
        let of_kind = paths.iter().filter(|path| !kept::METADATA.contains(&path.as_str()));
        of_kind.for_each(|path| writeln!(text, "- `{path}`").unwrap());
        if let Some(messages) = kept::MESSAGES.iter().find(|messages| messages.kind == *kind) {
            let unless_true = messages.unless_true.iter().map(|type_| format!("{type_} (unless it is true)"));
            let types: Vec<String> =
                messages.always.iter().map(|type_| (*type_).to_owned()).chain(unless_true).collect();
            writeln!(text, "\nThe message is that of {} only; of others it is empty.", types.join(", ")).unwrap();
        } else if paths.iter().any(|path| path.ends_with("conditions.message")) {
            writeln!(text, "\nThe message is empty.").unwrap();
        }
    }
    text
}

/// How much there may be of what others decide.
fn limits() -> String {
    let mut text = "# Limits\n\nWhoever may create a pod, or hands over a file, decides how much Cutlist reads. Each limit is far beyond what is known of real \
                    clusters, so that one object can not make a plan take minutes.\n\n## One pod, or the template of one\n\nA pod that is beyond one of these stays pending with \
                    the reason `TooManyTerms`, which names it; where it runs already, its node does not go to save money.\n\n| what | most |\n|---|---|\n".to_owned();
    OF_A_POD.iter().for_each(|limit| writeln!(text, "| {} | {} |", limit.field, limit.most).unwrap());
    text.push_str(
        "\n## All pods together\n\nThe work that pods make is counted: preferences times constraints, for each pod that differs from the others. Where it is more than one plan may \
         take, those that make most of it stay pending with the same reason, so that whoever asks for little never waits for them. The pods may name 256 resources that no node has.\n",
    );
    writeln!(
        text,
        "\n## Volumes of one pod\n\nThere may be {ALTERNATIVES_MAX} places where a pod can reach its volumes: terms of the node affinity of a PersistentVolume, \
         `allowedTopologies` of a StorageClass, and combinations of those of several volumes. A pod whose volumes have more stays pending, and the plan says so."
    )
    .unwrap();
    writeln!(
        text,
        "\n## CapacityBuffers\n\nRoom is kept for at most {PODS_MAX} pods of one buffer, and {PODS_OF_ALL_MAX} of all together. Where they ask for more, each gets as much as the \
         others, as far as it asks for so much, and the plan says so."
    )
    .unwrap();
    writeln!(
        text,
        "\n## Services\n\nWhere the settings give default topology spread constraints, {SERVICES_MAX} Services of a namespace that select differently say what a pod belongs to."
    )
    .unwrap();
    text.push_str("\n## Files\n\n| what | most |\n|---|---|\n");
    FileKind::ALL
        .iter()
        .for_each(|kind| writeln!(text, "| bytes of {} | {} |", kind.what(), kind.bytes_max()).unwrap());
    for (what, most) in [
        ("bytes that gzip of JSON unpacks to", UNPACKED_BYTES_MAX),
        ("bytes of one object in it", OBJECT_BYTES_MAX),
        ("bytes that gzip of YAML unpacks to", UNPACKED_TEXT_BYTES_MAX),
    ] {
        writeln!(text, "| {what} | {most} |").unwrap();
    }
    writeln!(text, "| objects of a snapshot | {OBJECTS_MAX} |").unwrap();
    writeln!(text, "| bytes of a name in it, and of a namespace | {NAME_BYTES_MAX} |").unwrap();
    text
}

/// Every rule of `cutlist lint`: a table, then a page for each.
fn rules_of_lint() -> String {
    let mut text = "# Rules of `cutlist lint`\n\n`cutlist explain CODE` says the same. A code has one meaning and is never used for another. Errors are what can not be used, \
                    warnings what is probably not meant, notes what is only said.\n\nAn example that names only a `kind` leaves out what is beside the point; \
                    `--- # NAME` begins another file. Both examples of each rule are tried by a test.\n\n\
                    A finding does not count where `# cutlist:ignore CODE REASON` stands on its line, on the line above or before everything else in its file; \
                    where the annotation `cutlist.dev/ignore: CODE REASON` of its object says so; where `spec.lint` of [cutlist.yaml](cutlist.json) does; or where it is in \
                    the file of `--baseline` or of `spec.lint.baseline`. That is for lint alone: `plan` and `run` refuse what can not be used.\n\n| code | name | severity | what holds |\n|---|---|---|---|\n"
        .to_owned();
    for rule in rules::all() {
        let code = rule.code.to_lowercase();
        let severity = rule.severity.word();
        writeln!(text, "| [{}](#{code}) | {} | {severity} | {} |", rule.code, rule.name, rule.summary).unwrap();
    }
    for rule in rules::all() {
        let page = explained::page(rule);
        write!(text, "\n## {}\n\n**{}**, {}. {page}", rule.code, rule.name, rule.severity.word()).unwrap();
    }
    text
}

/// The policies of the Kustomize base, with the names of a release.
fn policies() -> String {
    let text = include_str!("../deploy/kustomize/base/policies.yaml");
    let account = "system:serviceaccount:{{ .Release.Namespace }}:{{ include \"cutlist.serviceAccount\" . }}";
    let text = text.replace("system:serviceaccount:cutlist:cutlist", account);
    let mut chart = String::from("{{- if .Values.admissionPolicies }}\n");
    for line in text.lines() {
        let of_release = |key: &str, line: &str| match line.split_once(&format!("{key}: cutlist-")) {
            Some((before, rest)) => format!("{before}{key}: {{{{ printf \"%s-{rest}\" .Release.Name | quote }}}}"),
            None => line.to_owned(),
        };
        let name = |line: &str| of_release("name", line);
        let policy = |line: &str| of_release("policyName", line);
        let is_metadata = line.starts_with("  name: cutlist-");
        writeln!(chart, "{}", if is_metadata { name(line) } else { policy(line) }).unwrap();
        if is_metadata {
            chart.push_str("  labels: {{- include \"cutlist.labels\" . | nindent 4 }}\n");
        }
    }
    chart + "{{- end }}\n"
}

/// The rules of the roles in `deploy/`, from the table of what is asked of the API server.
fn roles() -> Vec<(String, String)> {
    let reads = |verb: &&str| ["get", "list", "watch"].contains(verb);
    let is_lease = |permission: &Permission| permission.group == "coordination.k8s.io";
    // A lease is written in the own namespace only.
    let rules = |mode: Mode| {
        let of_mode = PERMISSIONS.iter().filter(move |permission| permission.mode == mode);
        of_mode.map(|one| rule(one, |verb| !is_lease(one) || reads(verb))).collect::<String>()
    };
    let (observe, enforce) = (rules(Mode::Observe), rules(Mode::Enforce));
    let leader: String =
        PERMISSIONS.iter().filter(|one| is_lease(one)).map(|one| rule(one, |verb| !reads(verb))).collect();
    // What is read once, and neither watched nor written; leases tell nothing that a plan needs.
    let snapshots: String = PERMISSIONS
        .iter()
        .filter(|one| one.mode == Mode::Observe && !is_lease(one) && one.verbs.contains(&"list"))
        .map(|one| rule(one, |verb| *verb == "list"))
        .collect();
    let role = |kind: &str, name: &str, rules: &str| {
        format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {name}\nrules:\n{rules}")
    };
    let base = role("ClusterRole", "cutlist-observe", &observe) + "---\n" + &role("Role", "cutlist-leader", &leader);
    let files = [
        ("deploy/kustomize/base/roles.yaml", base),
        ("deploy/kustomize/enforce/role.yaml", role("ClusterRole", "cutlist-enforce", &enforce)),
        ("deploy/snapshots/role.yaml", role("ClusterRole", "cutlist-snapshots", &snapshots)),
        ("deploy/chart/rbac/review.yaml", snapshots),
        ("deploy/chart/rbac/observe.yaml", observe),
        ("deploy/chart/rbac/enforce.yaml", enforce),
        ("deploy/chart/rbac/leader.yaml", leader),
    ];
    files.map(|(path, content)| (path.to_owned(), content)).into()
}

/// One rule of a role in YAML, with the verbs that are wanted.
fn rule(permission: &Permission, wanted: impl Fn(&&str) -> bool) -> String {
    let mut text = format!("- apiGroups:\n  - {:?}\n  resources:\n", permission.group);
    for resource in permission.resources {
        writeln!(text, "  - {resource}").unwrap();
    }
    text.push_str("  verbs:\n");
    for verb in permission.verbs.iter().copied().filter(wanted) {
        writeln!(text, "  - {verb}").unwrap();
    }
    text
}

#[test]
fn committed_files_are_what_the_types_produce() {
    let update = std::env::var_os("UPDATE").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stale = Vec::new();
    for (path, expected) in generated() {
        if std::fs::read_to_string(root.join(&path)).is_ok_and(|found| found == expected) {
            continue;
        }
        if update {
            std::fs::create_dir_all(root.join(&path).parent().unwrap()).unwrap();
            std::fs::write(root.join(&path), expected).unwrap();
        } else {
            stale.push(path);
        }
    }
    assert!(stale.is_empty(), "not what the types produce: {}; run `make update-golden`", stale.join(", "));
}

#[test]
fn schemas_accept_what_the_program_writes() {
    let catalog = cutlist::core::catalog::Catalog::built_in("ap-northeast-2").unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema::<cutlist::core::catalog::Catalog>("")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let value = serde_json::to_value(&catalog).unwrap();
    assert!(validator.validate(&value).is_ok());
    assert!(!validator.is_valid(&serde_json::json!({ "version": 1, "region": "r", "date": "2026-11-20" })));
}

#[test]
fn the_schema_of_plans_takes_plans_and_nothing_else() {
    let schema: serde_json::Value = serde_json::from_str(&schema::<Plan>("")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut plans = 0;
    for case in std::fs::read_dir(root.join("tests/render")).unwrap() {
        let Ok(text) = std::fs::read_to_string(case.unwrap().path().join("plan.json")) else { continue };
        let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(validator.is_valid(&plan), "{:?}", validator.validate(&plan).err());
        for field in ["id", "steps", "summary"] {
            let mut broken = plan.clone();
            broken.as_object_mut().unwrap().shift_remove(field);
            assert!(!validator.is_valid(&broken), "a plan without {field}");
        }
        plans += 1;
    }
    assert!(plans > 5, "the plans are missing");
}
