//! Files that are passed over, and what was applied from them when they could be read: it is not gone, it is out of sight.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::diagnostic::Span;
use super::findings::Finding;
use super::rules::{kinds as kind_rules, kustomize as rules};
use super::{Definition, Definitions};
use crate::api::keys;
use crate::api::settings;
use crate::api::source::{SourceFile, Standing, is_worth_a_note};
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::{Objects, Snapshot};

pub const OF_A_CHART: &str = "a template of a Helm chart";
const LINK: &str = "a symbolic link that leads out of the repository, or nowhere";
const SUBMODULE: &str = "a submodule";

/// A file, or a folder with all that is in it, of which nobody knows what it defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRead {
    pub path: String,
    /// `a submodule`
    pub why: &'static str,
}

impl NotRead {
    fn hides(&self, file: &str) -> bool {
        file.strip_prefix(&self.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What stands for such a file, and what is said of it.
pub(super) fn passed_over(index: usize, source: &SourceFile) -> (NotRead, Option<Finding>) {
    let why = if source.standing == Standing::Submodule { SUBMODULE } else { LINK };
    let not_read = NotRead { path: source.path.clone(), why };
    let at = |rule, message: &str| Finding::at_span(rule, index, Span::start(), message);
    // Nothing that settings ask for may be missing in silence.
    if source.path == settings::FILE_NAME {
        let message = format!("{} is {why}: no settings are read", settings::FILE_NAME);
        return (not_read, Some(at(&kind_rules::NO_SETTINGS, &message)));
    }
    let is_link = source.standing == Standing::LinkNotFollowed && is_worth_a_note(&source.path);
    let message = "the symbolic link leads out of the repository, or nowhere: not followed";
    let finding = is_link.then(|| at(&rules::LINK, message));
    (not_read, finding)
}

impl Definitions {
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
        let Some(not_read) = definitions.not_read.iter().find(|not_read| not_read.hides(file)) else { continue };
        if (before.is_some() || is_ours(metadata)) && !of_kind(definitions).iter().any(|it| named(&it)) {
            let why = format!("it was defined in {file}, and {} is {} now", not_read.path, not_read.why);
            let object = json!({ "metadata": { "name": metadata.name, "namespace": metadata.namespace } });
            found.push(Unreadable::new(T::KIND, &object, &why));
        }
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let manager = metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    manager.is_some_and(|manager| manager == keys::FIELD_MANAGER)
}
