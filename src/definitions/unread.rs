//! Findings about documents that are not read, as their kind is not ours, is not there, or is of another time.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{self, Document, Parsed};
use super::files;
use super::findings::{Finding, FindingPlace};
use super::fixes::Instead;
use super::kinds::{Class, Kind, OldKind, classify};
use super::migration::removal;
use super::rules::image_lock as image_lock_rules;
use super::rules::kinds as rules;
use super::rules::reading;
use super::rules::schema::UNKNOWN_FIELD;
use super::suggest::{self, Hint};
use crate::api::kustomization::{self, folder};
use crate::api::source::SourceFile;
use crate::api::{cluster_fields, image_lock, scenario, settings};

fn name_for(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Settings => Some(settings::FILE_NAME),
        Kind::Scenario => Some(scenario::FILE_NAME),
        Kind::ImageLock => Some(image_lock::FILE_NAME),
        _ => None,
    }
}

/// Whether the file is called as those of the kind are.
pub fn is_of_its_name(kind: Kind, path: &str) -> bool {
    path.rsplit('/').next() == name_for(kind)
}

/// Settings, scenarios and image locks count only at their place.
pub fn misplaced(kind: Kind, document: &Document, path: &str) -> Option<Finding> {
    let name = name_for(kind)?;
    let message = format!("{} is read only from {name} at the root: skipped", kind.name());
    (path != name).then(|| Finding::at(&rules::MISPLACED_FILE, document, "/kind", FindingPlace::Value, message))
}

/// Files of the names of settings, scenarios and image locks that lie in a folder with definitions: they count where that folder is
/// planned by itself.
pub fn of_own_folders(sources: &[&SourceFile], parsed: &[Parsed]) -> BTreeSet<String> {
    let is_object = |it: &Document| match classify(&it.value) {
        Class::Read(kind) => kind.is_object(),
        Class::Old(_) => true,
        _ => false,
    };
    let is_planned = |(source, parsed): &(&&SourceFile, &Parsed)| {
        kustomization::is_file(&source.path) || parsed.documents.iter().any(is_object)
    };
    let name = |path: &str| path.rsplit('/').next().is_some_and(files::is_of_root);
    let nested = sources.iter().map(|source| source.path.as_str()).filter(|path| path.contains('/') && name(path));
    let is_own = |path: &&str| {
        let mut planned = sources.iter().zip(parsed).filter(|(source, _)| files::covers(folder(path), &source.path));
        planned.any(|it| is_planned(&it))
    };
    nested.filter(is_own).map(str::to_owned).collect()
}

/// The settings' file, or that of the image lock, holds something else.
pub fn no_settings(document: &Document, path: &str) -> Option<Finding> {
    let (rule, what, hint) = match path {
        settings::FILE_NAME => (
            &rules::NO_SETTINGS,
            "the settings of Cutlist",
            "write `kind: Settings` and `apiVersion: cutlist.dev/v1alpha1`",
        ),
        image_lock::FILE_NAME => (&image_lock_rules::NO_LOCK, "locked images", "`cutlist ami lock` writes it anew"),
        _ => return None,
    };
    let message = format!("{path} is for {what}, and holds something else");
    Some(Finding::at(rule, document, "/kind", FindingPlace::Value, message).hint(hint))
}

/// A document without apiVersion and kind: a slip in these words, objects that nothing holds together, or another tool's file.
pub fn no_object(document: &Document) -> Finding {
    let is_definition = |item: &Value| matches!(classify(item), Class::Read(kind) if kind.is_object());
    if document.value.as_array().is_some_and(|items| items.iter().any(is_definition)) {
        let message = "a list of objects is no object: kubectl refuses it, and nothing in it is read";
        let finding = Finding::at(&rules::INCOMPLETE, document, "", FindingPlace::Key, message);
        return finding
            .hint("write `apiVersion: v1` and `kind: List` with the objects under `items`, or a document for each");
    }
    let map = document.value.as_object();
    let keys = || map.into_iter().flat_map(|map| map.keys().map(String::as_str));
    for field in ["apiVersion", "kind"] {
        let slip = keys().find(|key| suggest::nearest(key, [field].into_iter()).is_some());
        if let Some(slip) = slip.filter(|_| keys().any(|key| matches!(key, "metadata" | "spec"))) {
            let pointer = document::spans::join("", slip);
            let message = format!("unknown field `{slip}` where `{field}` should be");
            let finding = Finding::at(&rules::INCOMPLETE, document, &pointer, FindingPlace::Key, message);
            return finding.hint(Hint::question(&[field]));
        }
    }
    let lacks = match (
        map.is_some_and(|map| map.contains_key("apiVersion")),
        map.is_some_and(|map| map.contains_key("kind")),
    ) {
        (false, false) => "neither apiVersion nor kind",
        (true, _) => "no kind",
        (false, true) => "no apiVersion",
    };
    let message = format!("no Kubernetes object ({lacks}): skipped");
    Finding::at(&rules::NO_OBJECT, document, "", FindingPlace::Key, message)
}

/// Whether the document is of a list, and of a kind that matters here.
pub fn is_item_of_ours(document: &Document) -> bool {
    !document.root.is_empty() && !matches!(classify(&document.value), Class::NoObject | Class::Foreign)
}

/// An item of a list that is no object. kubectl takes nothing of the list then.
pub fn no_item(document: &Document) -> Option<Finding> {
    let message = "this item of a list is no object, and kubectl takes nothing of the list with it";
    let finding = Finding::at(&rules::INCOMPLETE, document, "", FindingPlace::Key, message);
    (!document.root.is_empty())
        .then(|| finding.hint("remove it, or write an object with apiVersion, kind and metadata"))
}

/// A pointer of Git LFS, which Git keeps in the place of the file.
fn is_lfs_pointer(content: &[u8]) -> bool {
    let versions = ["version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"];
    versions.iter().any(|version| content.starts_with(version.as_bytes()))
}

/// The program that encrypted the file, if the file is encrypted as a whole.
fn encrypted_by(content: &[u8]) -> Option<&'static str> {
    let beginnings = [
        ("$ANSIBLE_VAULT;", "ansible-vault"),
        ("-----BEGIN PGP MESSAGE-----", "OpenPGP"),
        ("-----BEGIN AGE ENCRYPTED FILE-----", "age"),
    ];
    beginnings.into_iter().find(|(beginning, _)| content.starts_with(beginning.as_bytes())).map(|(_, by)| by)
}

/// The finding about a file that stands for a text elsewhere. `note` is the finding about a file that holds no object.
pub fn stand_in(note: Finding, content: &[u8]) -> Finding {
    if is_lfs_pointer(content) {
        let message = "the file is a pointer of Git LFS: what it stands for is not in Git, and is not read";
        let finding = Finding::at_span(&reading::LFS_POINTER, note.file, note.span, message);
        return finding.hint(
            "take definitions out of Git LFS: they are small, and neither Argo CD nor Flux reads them there by itself",
        );
    }
    match encrypted_by(content) {
        Some(by) => {
            let message = format!("no Kubernetes object (encrypted by {by}): skipped");
            Finding::at_span(&rules::NO_OBJECT, note.file, note.span, message)
        }
        None => note,
    }
}

/// The finding about a file that can not be read, and in which nothing looks like a definition. `found` says why it can
/// not be read.
pub fn no_definition(found: &Finding) -> Finding {
    let message = format!("not read, since {}; nothing in it looks like a definition: skipped", found.message);
    Finding::at_span(&rules::NO_OBJECT, found.file, found.span, message)
}

/// The finding about an object with only one of apiVersion and kind.
pub fn incomplete(missing: &str, document: &Document) -> Finding {
    let keys = document.value.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
    let mut keys = keys.filter(|key| !matches!(*key, "apiVersion" | "kind" | "metadata" | "spec" | "status"));
    let slip = keys.find(|key| suggest::nearest(key, [missing].into_iter()).is_some());
    let pointer = slip.map_or(String::new(), |slip| document::spans::join("", slip));
    let hint = slip.map_or_else(|| format!("add `{missing}`").into(), |_| Hint::question(&[missing]));
    let message = format!("the object has no {missing}");
    Finding::at(&rules::INCOMPLETE, document, &pointer, FindingPlace::Key, message).hint(hint)
}

/// A kind of our groups, or nearly, that does not exist: no API server takes the object, and left out it looks like one that was deleted.
pub fn unknown(document: &Document, meant: Option<Kind>) -> Finding {
    let (api_version, kind) =
        (document.str("/apiVersion").unwrap_or_default(), document.str("/kind").unwrap_or_default());
    let message = format!("there is no kind {kind} in {api_version}");
    match meant {
        Some(meant) => {
            let pointer = if meant.name() == kind { "/apiVersion" } else { "/kind" };
            let hint = format!("did you mean `kind: {}` in `apiVersion: {}`?", meant.name(), meant.api_version());
            let finding =
                Finding::at(&rules::MISSPELT_KIND, document, pointer, FindingPlace::Value, message).hint(hint);
            match pointer {
                "/kind" => finding.meaning(meant.name()),
                // The kind exists. Nobody knows whether another version is one to come.
                _ => {
                    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
                    let is_same = digits(api_version) == digits(meant.api_version());
                    finding.instead(is_same.then(|| Instead::Text(meant.api_version().to_owned())))
                }
            }
        }
        None => {
            let group = api_version.split('/').next().unwrap_or_default();
            let known = Kind::ALL.into_iter().filter(|it| it.group() == group);
            let known: Vec<String> = known.map(|it| format!("{} ({})", it.name(), it.api_version())).collect();
            let hint = format!("the API server refuses it; of this group there are {}", known.join(", "));
            Finding::at(&rules::UNKNOWN_KIND, document, "/kind", FindingPlace::Value, message).hint(hint)
        }
    }
}

/// What a cluster wrote into the object before somebody saved it. These fields are not read, and never applied.
pub fn set_by_cluster(document: &Document) -> Option<Finding> {
    let found = cluster_fields::found(&document.value);
    let first = found.first()?;
    let names: Vec<String> =
        found.iter().map(|pointer| format!("`{}`", document::spans::field_path(pointer))).collect();
    let message = format!(
        "a cluster sets {}: a definition must not have {}",
        names.join(", "),
        if found.len() == 1 { "it" } else { "them" }
    );
    let finding = Finding::at(&rules::SET_BY_CLUSTER, document, first, FindingPlace::Key, message);
    let finding = finding.hint("remove what was exported with the object: it is not applied");
    Some(finding.fixed_by(removal::fix(document, &found)))
}

/// Where a field has moved to. A family of images has an alias of its own, by which images are now selected.
fn moved_text(document: &Document, pointer: &str, now: &str) -> Option<String> {
    let field = document::spans::last(pointer);
    let family = document.str(pointer).filter(|_| field == "amiFamily");
    let Some(family) = family else { return Some(format!("`{field}` is now {now}")) };
    if document.value.pointer("/spec/amiSelectorTerms").is_some() {
        // The terms say which images are meant, and `amiFamily` may still say their family.
        return None;
    }
    let alias = family.to_ascii_lowercase();
    let terms = match alias.as_str() {
        "al2" => "amiSelectorTerms with the alias `al2@latest`, which there is up to Kubernetes 1.32".to_owned(),
        "al2023" | "bottlerocket" | "windows2019" | "windows2022" | "windows2025" => {
            format!("amiSelectorTerms with an alias, such as `{alias}@latest`")
        }
        _ => "amiSelectorTerms by id, name or tags, beside `amiFamily: Custom`".to_owned(),
    };
    Some(format!("`{field}` is now {terms}"))
}

/// Names the program that writes the new form, where there is one.
fn of_migrate(old: &OldKind) -> &'static str {
    if old.fields.is_empty() { "" } else { "; `cutlist migrate FILE` does that" }
}

/// An object of a version before 1: what to write now, and the slips in it.
pub fn outdated(old: &'static OldKind, document: &Document) -> Vec<Finding> {
    let moved = old.moved.iter().filter(|(pointer, _)| document.value.pointer(pointer).is_some());
    let moved: Vec<String> = moved.filter_map(|(pointer, now)| moved_text(document, pointer, now)).collect();
    let hint = if moved.is_empty() {
        format!("write {}{}", old.now, of_migrate(old))
    } else {
        format!("write {}; {}{}", old.now, moved.join("; "), of_migrate(old))
    };
    let message = format!("{} {} is no longer served by Karpenter 1", old.api_version, old.kind);
    let mut findings =
        vec![Finding::at(&rules::OLD_VERSION, document, "/apiVersion", FindingPlace::Value, message).hint(hint)];
    for (parent, names) in old.fields {
        for (pointer, key, _) in document.members(parent) {
            if names.contains(&key) {
                continue;
            }
            let message = format!("unknown field `{key}`");
            let known = || names.iter().copied();
            let under_spec = old.fields.iter().any(|(at, names)| *at == "/spec" && names.contains(&key));
            let hint = match suggest::did_you_mean(key, known()) {
                Some(question) => Some(question),
                None if parent.is_empty() && under_spec => Some("it belongs under `spec`".into()),
                None => None,
            };
            let finding = Finding::at(&UNKNOWN_FIELD, document, &pointer, FindingPlace::Key, message);
            findings.push(finding.maybe_hint(hint));
        }
    }
    findings
}
