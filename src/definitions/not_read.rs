//! Files that are passed over, and what was applied from them when they could be read: it is not gone, it is out of sight.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::diagnostic::Span;
use super::document::Document;
use super::findings::Finding;
use super::kinds::{self, Kind};
use super::kustomize::Elsewhere;
use super::rules::reading::{NOT_LET, TOO_LARGE as TOO_LARGE_RULE};
use super::rules::{kinds as kind_rules, kustomize as rules};
use super::{Definition, Definitions, files, held, limits};
use crate::api::kustomization::folder;
use crate::api::source::{SourceFile, Standing, is_worth_a_note};
use crate::api::{keys, settings};
use crate::core::plan::{Note, NoteCode};
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::{Objects, Snapshot};

pub const OF_A_CHART: &str = "is a template of a Helm chart now";
pub const UNREADABLE: &str = "can not be read now";
pub const WITHOUT_OBJECTS: &str = "holds no objects now";
const LINK: &str = "is a symbolic link that leads out of the repository, or nowhere, now";
pub const SUBMODULE: &str = "is a submodule now";
const TOO_LARGE: &str = "is too large to be read now";
const HELD: &str = "holds an object of this kind and name for another program now";
const ALIKE: &str = "has an object of this name and kind in the group of another project now";

/// A file, or a folder with all that is in it, of which nobody knows what it defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRead {
    pub path: String,
    /// `is a submodule now`
    pub why: String,
    /// The line of the file that says so, or 0 where it is the file itself.
    line: usize,
    hides: Hides,
}

/// What is out of sight because a file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hides {
    /// What was defined in the file or folder itself.
    OwnFiles,
    /// `NodePool/default`: nothing but this object, whatever file it was defined in.
    Object(String),
    /// What was defined anywhere, and may come from there now.
    Anything {
        always: Hidden,
        /// Whether the definitions before had the same source, and nothing was missing in them. What goes now goes for
        /// another reason then.
        is_known: bool,
    },
}

/// What a source hides even where it was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hidden {
    Nothing,
    /// What was defined in the folder that is built.
    Below(String),
    /// Anything, as definitions come the same way.
    All,
}

impl NotRead {
    pub fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self { path: path.into(), why: why.into(), line: 0, hides: Hides::OwnFiles }
    }

    /// An object of another project that is called as one of ours was. Nobody knows whether somebody meant to put it in
    /// the place of that one.
    pub fn alike(path: &str, document: &Document) -> Option<Self> {
        let kind = document.str("/kind").and_then(kinds::named_alike)?;
        let object = format!("{}/{}", kind.name(), document.str("/metadata/name")?);
        Some(Self { hides: Hides::Object(object), ..Self::new(path, ALIKE) })
    }

    /// Definitions that stand in an object of another kind. They may have been in files of their own before.
    pub fn held(path: &str, document: &Document) -> impl Iterator<Item = Self> {
        let named = held::of(document).into_iter().filter_map(|it| Some(format!("{}/{}", it.kind, it.name?)));
        named.map(move |object| Self { hides: Hides::Object(object), ..Self::new(path, HELD) })
    }

    /// A source that may bring objects that nobody sees here. What is in no file any more may have moved there.
    pub fn bringing(path: impl Into<String>, why: impl Into<String>) -> Self {
        let hides = Hides::Anything { always: Hidden::Nothing, is_known: false };
        Self { hides, ..Self::new(path, why) }
    }

    /// A source from which a kustomization takes objects. Where definitions are built with it, any of them may come
    /// from there.
    pub fn elsewhere(found: &Elsewhere, path: &str, top: &str, builds_definitions: bool) -> Self {
        let always = if builds_definitions { Hidden::All } else { Hidden::Below(folder(top).to_owned()) };
        let hides = Hides::Anything { always, is_known: false };
        Self { hides, line: found.line, ..Self::new(path, found.what.clone()) }
    }

    /// `kustomization.yaml:5 makes objects by ...`
    fn sentence(&self) -> String {
        match self.line {
            0 => format!("{} {}", self.path, self.why),
            line => format!("{}:{line} {}", self.path, self.why),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.path, &self.why) == (&other.path, &other.why)
    }

    /// Gives `None` for what hides its own files alone. A submodule hides those and others.
    fn is_known(&self) -> Option<bool> {
        match self.hides {
            Hides::Anything { is_known, .. } => Some(is_known),
            Hides::OwnFiles | Hides::Object(_) => None,
        }
    }

    fn hides(&self, kind: &str, name: &str, file: &str, earlier: Option<&Definitions>) -> bool {
        match &self.hides {
            Hides::OwnFiles => files::covers(&self.path, file),
            Hides::Object(object) => object.split_once('/') == Some((kind, name)),
            Hides::Anything { always, is_known } => {
                let was_there = || {
                    let mut of_earlier = earlier.iter().flat_map(|earlier| &earlier.not_read);
                    of_earlier.any(|it| it.is_same(self) && matches!(it.hides, Hides::Anything { .. }))
                };
                match always {
                    Hidden::All => true,
                    Hidden::Below(folder) if files::covers(folder, file) => true,
                    Hidden::Below(_) | Hidden::Nothing => !(*is_known || was_there()),
                }
            }
        }
    }
}

/// What stands for a file that is passed over, and the finding about it.
pub(super) fn passed_over(index: usize, source: &SourceFile) -> (NotRead, Option<Finding>) {
    let why = match source.standing {
        Standing::Submodule => SUBMODULE,
        Standing::TooLarge => TOO_LARGE,
        Standing::Unreadable => UNREADABLE,
        _ => LINK,
    };
    let not_read = NotRead::new(source.path.clone(), why);
    let at = |rule, message: &str| Finding::at_span(rule, index, Span::start(), message);
    // What settings ask for must not be missing without a finding.
    if source.path == settings::FILE_NAME {
        let message = format!("{} {why}: no settings are read", settings::FILE_NAME);
        return (not_read, Some(at(&kind_rules::NO_SETTINGS, &message)));
    }
    if source.standing == Standing::TooLarge {
        let message = format!("the file is larger than the {} MiB that are read", limits::FILE_BYTES >> 20);
        let hint = "divide it; if it holds no definitions, name those that do under `spec.paths` of cutlist.yaml";
        return (not_read, Some(at(&TOO_LARGE_RULE, &message).hint(hint)));
    }
    if source.standing == Standing::Unreadable {
        let message = format!("the file can not be read: {}", String::from_utf8_lossy(&source.content));
        let hint = "let whoever starts cutlist read it; if it holds no definitions, name those that do under `spec.paths` of cutlist.yaml";
        return (not_read, Some(at(&NOT_LET, &message).hint(hint)));
    }
    let is_link = source.standing == Standing::LinkNotFollowed && is_worth_a_note(&source.path);
    let message = "the symbolic link leads out of the repository, or nowhere: not followed";
    let finding = is_link.then(|| at(&rules::LINK, message));
    (not_read, finding)
}

impl Definitions {
    /// The name and the file of each NodePool, with those that can not be used.
    pub fn pools_in_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let usable = self.node_pools.iter();
        let usable = usable.filter_map(|it| Some((it.value.metadata.name.as_deref()?, it.file.as_str())));
        let broken = self.broken.iter().filter(|it| it.kind == Kind::NodePool.name());
        usable.chain(broken.map(|it| (it.name.as_str(), it.file.as_str())))
    }

    /// Notes that a NodePool that was defined in this file is not here, and not gone either. `earlier` are the
    /// definitions that it was in.
    pub fn note_of_hidden_pool(&self, name: &str, file: &str, earlier: Option<&Self>) -> Option<Note> {
        if self.pools_in_files().any(|(own, _)| own == name) {
            return None;
        }
        let not_read = self.not_read.iter().find(|it| it.hides(Kind::NodePool.name(), name, file, earlier))?;
        let why = not_read.sentence();
        let text = format!("NodePool {name} is not taken for removed: it was defined in {file}, and {why}");
        Some(Note::new(NoteCode::LeftOut, text).about_pool(name))
    }

    /// Notes that these definitions come after others. A source that brought objects to those as well hides nothing
    /// more now, unless it hid something then. `hid_something` says that it did.
    pub fn come_after(&mut self, earlier: &Self, hid_something: bool) {
        for own in &mut self.not_read {
            let was_known = earlier.not_read.iter().filter(|before| before.is_same(own)).find_map(NotRead::is_known);
            if let (Hides::Anything { is_known, .. }, Some(was_known)) = (&mut own.hides, was_known) {
                *is_known = was_known || !hid_something;
            }
        }
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
        let hides = |not_read: &&NotRead| not_read.hides(T::KIND, name, file, earlier);
        let Some(not_read) = definitions.not_read.iter().find(hides) else { continue };
        if (before.is_some() || is_ours(metadata)) && !of_kind(definitions).iter().any(|it| named(&it)) {
            let why = format!("it was defined in {file}, and {}", not_read.sentence());
            let object = json!({ "metadata": { "name": metadata.name, "namespace": metadata.namespace } });
            found.push(Unreadable::new(T::KIND, &object, &why));
        }
    }
}

fn is_ours(metadata: &ObjectMeta) -> bool {
    let manager = metadata.labels.as_ref().and_then(|labels| labels.get(keys::MANAGED_BY));
    manager.is_some_and(|manager| manager == keys::FIELD_MANAGER)
}
