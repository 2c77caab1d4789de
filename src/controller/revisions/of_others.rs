//! Definitions of a revision whose names another installation has in the cluster. Each is set aside alone, as long as that lasts: nothing
//! of it is planned, applied or removed, and the others go on.

use std::collections::BTreeSet;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_pool::NodePool;
use crate::controller::observed::others::{Others, key_of};
use crate::core::plan::{Note, NoteCode};
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::kinds::Stored;
use crate::definitions::Definitions;

use super::kinds::{Applied, ForEachKind, for_each_kind};

/// What is set aside of a revision now.
#[derive(Debug, Default)]
pub struct OfOthers {
    /// The definitions with it; `None` where nothing is.
    whole: Option<Box<Definitions>>,
    objects: Others,
}

impl OfOthers {
    /// Takes out of the definitions what another installation has, and brings back what none has any more. Whether that made them others.
    pub fn set_aside(&mut self, definitions: &mut Definitions, others: &Others) -> bool {
        if others.is_empty() && self.whole.is_none() {
            return false;
        }
        let keys = keys(self.whole.as_deref().unwrap_or(definitions));
        let objects: Others = others
            .iter()
            .filter(|(key, _)| keys.contains(*key))
            .map(|(key, owner)| (key.clone(), owner.clone()))
            .collect();
        let is_change = !objects.keys().eq(self.objects.keys());
        self.objects = objects;
        if !is_change {
            return false;
        }
        let whole = self.whole.take().unwrap_or_else(|| Box::new(definitions.clone()));
        *definitions = (*whole).clone();
        if !self.objects.is_empty() {
            self.whole = Some(whole);
            take_out(definitions, &self.objects);
        }
        true
    }

    /// The NodePools that are set aside. Claims that are there are looked after by what they were made of.
    pub fn node_pools(&self) -> impl Iterator<Item = &NodePool> {
        let pools = self.whole.iter().flat_map(|whole| &whole.node_pools).map(|it| &it.value);
        pools.filter(|pool| self.has(*pool))
    }

    /// Whether somebody could take the other installation's object for the one that was reviewed: a class is named by pools, and a template
    /// of pods by buffers.
    pub fn hides_something(&self, snapshot: &Snapshot) -> bool {
        snapshot.node_classes.iter().any(|class| self.has(class))
            || snapshot.pod_templates.iter().any(|template| self.has(template))
    }

    /// Takes what would be taken for it out of a snapshot.
    pub fn hide(&self, snapshot: &mut Snapshot) {
        snapshot.node_classes.retain(|class| !self.has(class));
        snapshot.pod_templates.retain(|template| !self.has(template));
    }

    /// One for each object, with whose it is.
    pub fn notes(&self, installation: &str) -> Vec<Note> {
        let note = |((kind, name), owner): (&(&'static str, String), &String)| {
            let then = if *kind == EC2NodeClass::KIND { ", and no node is made of it" } else { "" };
            let text = format!(
                "{kind} {name} is of installation {owner} in the cluster, and this is {installation}: it is set aside{then}. Give it another \
                 name, or start with --installation {owner} where the other one is no more"
            );
            Note::new(NoteCode::OfAnotherInstallation, text).about(kind, name)
        };
        self.objects.iter().map(note).collect()
    }

    fn has<T: Stored>(&self, object: &T) -> bool {
        !self.objects.is_empty() && self.objects.contains_key(&(T::KIND, key_of(object)))
    }
}

/// By kind and name, as those of other installations are noted.
fn keys(definitions: &Definitions) -> BTreeSet<(&'static str, String)> {
    struct Keys<'d>(&'d Definitions, BTreeSet<(&'static str, String)>);
    impl ForEachKind for Keys<'_> {
        fn kind<T: Applied>(&mut self) {
            self.1.extend(T::of(self.0).iter().map(|it| (T::KIND, key_of(&it.value))));
        }
    }
    let mut keys = Keys(definitions, BTreeSet::new());
    for_each_kind(&mut keys);
    keys.1
}

fn take_out(definitions: &mut Definitions, objects: &Others) {
    struct TakingOut<'d>(&'d mut Definitions, &'d Others);
    impl ForEachKind for TakingOut<'_> {
        fn kind<T: Applied>(&mut self) {
            T::of_mut(self.0).retain(|it| !self.1.contains_key(&(T::KIND, key_of(&it.value))));
        }
    }
    for_each_kind(&mut TakingOut(definitions, objects));
}
