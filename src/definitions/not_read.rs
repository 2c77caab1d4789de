//! Files that are passed over, and what was applied from them when they could be read: it is not gone, it is out of sight.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::diagnostic::Span;
use super::document::Document;
use super::findings::Finding;
use super::kinds::{self, Kind};
use super::limits;
use super::rules::reading::TOO_LARGE as TOO_LARGE_RULE;
use super::rules::{kinds as kind_rules, kustomize as rules};
use super::{Definition, Definitions};
use crate::api::keys;
use crate::api::node_pool::NodePool;
use crate::api::settings;
use crate::api::source::{SourceFile, Standing, is_worth_a_note};
use crate::core::plan::{Note, NoteCode};
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::{Objects, Snapshot};

pub const OF_A_CHART: &str = "is a template of a Helm chart now";
pub const UNREADABLE: &str = "can not be read now";
pub const WITHOUT_OBJECTS: &str = "holds no objects now";
const LINK: &str = "is a symbolic link that leads out of the repository, or nowhere, now";
const SUBMODULE: &str = "is a submodule now";
const TOO_LARGE: &str = "is too large to be read now";
const ALIKE: &str = "has an object of this name and kind in the group of another project now";

/// A file, or a folder with all that is in it, of which nobody knows what it defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRead {
    pub path: String,
    /// `is a submodule now`
    pub why: &'static str,
    /// `NodePool/default`: nothing but this object is out of sight, whatever file it was defined in.
    pub object: Option<String>,
}

impl NotRead {
    pub fn new(path: impl Into<String>, why: &'static str) -> Self {
        Self { path: path.into(), why, object: None }
    }

    /// An object of another project, called like one of ours was: whether somebody meant to put it in the place of that one, who knows.
    pub fn alike(path: &str, document: &Document) -> Option<Self> {
        let kind = document.str("/kind").and_then(kinds::named_alike)?;
        let object = format!("{}/{}", kind.name(), document.str("/metadata/name")?);
        Some(Self { object: Some(object), ..Self::new(path, ALIKE) })
    }

    fn hides(&self, kind: &str, name: &str, file: &str) -> bool {
        match &self.object {
            Some(object) => object.split_once('/') == Some((kind, name)),
            None => file.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }
}

/// What stands for such a file, and what is said of it.
pub(super) fn passed_over(index: usize, source: &SourceFile) -> (NotRead, Option<Finding>) {
    let why = match source.standing {
        Standing::Submodule => SUBMODULE,
        Standing::TooLarge => TOO_LARGE,
        _ => LINK,
    };
    let not_read = NotRead::new(source.path.clone(), why);
    let at = |rule, message: &str| Finding::at_span(rule, index, Span::start(), message);
    // Nothing that settings ask for may be missing in silence.
    if source.path == settings::FILE_NAME {
        let message = format!("{} {why}: no settings are read", settings::FILE_NAME);
        return (not_read, Some(at(&kind_rules::NO_SETTINGS, &message)));
    }
    if source.standing == Standing::TooLarge {
        let message = format!("the file is larger than the {} MiB that are read", limits::FILE_BYTES >> 20);
        let hint = "divide it; if it holds no definitions, name those that do under `spec.paths` of cutlist.yaml";
        return (not_read, Some(at(&TOO_LARGE_RULE, &message).hint(hint)));
    }
    let is_link = source.standing == Standing::LinkNotFollowed && is_worth_a_note(&source.path);
    let message = "the symbolic link leads out of the repository, or nowhere: not followed";
    let finding = is_link.then(|| at(&rules::LINK, message));
    (not_read, finding)
}

impl Definitions {
    /// That a NodePool of other definitions is not here, and not gone either.
    pub fn note_of_hidden_pool(&self, pool: &Definition<NodePool>) -> Option<Note> {
        let name = pool.value.metadata.name.as_deref()?;
        if self.node_pools.iter().any(|it| it.value.metadata.name.as_deref() == Some(name)) {
            return None;
        }
        let not_read = self.not_read.iter().find(|it| it.hides(Kind::NodePool.name(), name, &pool.file))?;
        let (file, path, why) = (&pool.file, &not_read.path, not_read.why);
        let text = format!("NodePool {name} is not taken for removed: it was defined in {file}, and {path} {why}");
        Some(Note::new(NoteCode::LeftOut, text).about_pool(name))
    }

    /// What was applied from files that are not read any more, and is defined nowhere else. It is neither removed nor brought up to date, and
    /// no node goes that it may speak for. `earlier`: definitions that tell of files where the objects do not.
    pub fn out_of_sight(&self, applied: &Snapshot, earlier: Option<&Self>) -> Vec<Unreadable> {
        let mut found = Vec::new();
        if !self.not_read.is_empty() {
            let both = (self, earlier);
            look(both, &applied.node_pools, |it| &it.metadata, |it| &it.node_pools, &mut found);
            look(both, &applied.node_classes, |it| &it.metadata, |it| &it.node_classes, &mut found);
            look(both, &applied.node_overlays, |it| &it.metadata, |it| &it.node_overlays, &mut found);
            look(both, &applied.capacity_buffers, |it| &it.metadata, |it| &it.capacity_buffers, &mut found);
            look(both, &applied.pod_templates, |it| &it.metadata, |it| &it.pod_templates, &mut found);
            look(both, &applied.disruption_budgets, |it| &it.metadata, |it| &it.disruption_budgets, &mut found);
        }
        found
    }
}

fn look<T: Stored>(
    (definitions, earlier): (&Definitions, Option<&Definitions>),
    applied: &Objects<T>,
    metadata_of: fn(&T) -> &ObjectMeta,
    of_kind: fn(&Definitions) -> &[Definition<T>],
    found: &mut Vec<Unreadable>,
) {
    // Without a namespace it is `default`, in a file as in a cluster.
    let key = |metadata: &ObjectMeta| {
        (metadata.namespace.clone().filter(|namespace| namespace != "default"), metadata.name.clone())
    };
    for object in applied {
        let metadata = metadata_of(object);
        let named = |it: &&Definition<T>| key(metadata_of(&it.value)) == key(metadata);
        let before = earlier.and_then(|earlier| of_kind(earlier).iter().find(named)).map(|it| &it.file);
        let noted = metadata.annotations.as_ref().and_then(|notes| notes.get(keys::DEFINED_IN));
        let Some(file) = before.or(noted) else { continue };
        let name = metadata.name.as_deref().unwrap_or_default();
        let hides = |not_read: &&NotRead| not_read.hides(T::KIND, name, file);
        let Some(not_read) = definitions.not_read.iter().find(hides) else { continue };
        if (before.is_some() || is_ours(metadata)) && !of_kind(definitions).iter().any(|it| named(&it)) {
            let why = format!("it was defined in {file}, and {} {}", not_read.path, not_read.why);
            let object = json!({ "metadata": { "name": metadata.name, "namespace": metadata.namespace } });
            found.push(Unreadable::new(T::KIND, &object, &why));
        }
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let manager = metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    manager.is_some_and(|manager| manager == keys::FIELD_MANAGER)
}
