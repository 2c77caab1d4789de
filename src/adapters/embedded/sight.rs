//! Observations that do not show what is: a watch that broke, with or without anybody knowing, and objects that can not be read.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::{KindInDoubt, Unreadable};
use crate::core::snapshot::kinds::{ForEachKind, Stored, for_each_kind};

use super::world::World;

/// What is wrong with what is seen.
#[derive(Clone, Default)]
pub(super) struct Sight {
    frozen: Option<Frozen>,
    unreadable: Vec<Unreadable>,
}

#[derive(Clone)]
struct Frozen {
    resources: BTreeSet<String>,
    /// How they looked then.
    seen: Snapshot,
    at: Timestamp,
    /// What the observer knows of it.
    why: Option<String>,
}

impl World {
    /// From now on observations show these kinds (such as `pods`) as they are now, whatever becomes of them. `why`: what is known of
    /// the reason; `None`: nobody knows that anything is wrong.
    pub fn freeze(&mut self, resources: &[&str], why: Option<&str>) {
        let resources = resources.iter().map(|resource| (*resource).to_owned()).collect();
        let (seen, at, why) = (self.snapshot(), self.now, why.map(str::to_owned));
        self.sight.frozen = Some(Frozen { resources, seen, at, why });
        self.touch();
    }

    /// From now on observations show nothing of these kinds, and nobody knows that there is something.
    pub fn lose(&mut self, resources: &[&str]) {
        let resources = resources.iter().map(|resource| (*resource).to_owned()).collect();
        self.sight.frozen = Some(Frozen { resources, seen: Snapshot::default(), at: self.now, why: None });
        self.touch();
    }

    /// All is seen as it is again.
    pub fn see_all(&mut self) {
        self.sight = Sight::default();
        self.touch();
    }

    /// From now on there is an object that can not be read, beside those that can.
    pub fn set_aside(&mut self, object: Unreadable) {
        self.sight.unreadable.push(object);
        self.touch();
    }
}

impl Sight {
    /// The cluster as it is, made what is seen of it.
    pub(super) fn blur(&self, snapshot: &mut Snapshot) {
        struct Restore<'a>(&'a Frozen, &'a mut Snapshot);
        impl ForEachKind for Restore<'_> {
            fn kind<T: Stored>(&mut self) {
                if self.0.resources.contains(T::RESOURCE) {
                    T::all(&self.0.seen).clone_into(T::all_mut(self.1));
                }
            }
        }
        snapshot.doubts.unreadable.clone_from(&self.unreadable);
        let Some(frozen) = &self.frozen else { return };
        for_each_kind(&mut Restore(frozen, snapshot));
        if let Some(why) = &frozen.why {
            let kind = KindInDoubt { whole_at: frozen.at, why: why.clone() };
            snapshot.doubts.kinds = frozen.resources.iter().map(|resource| (resource.clone(), kind.clone())).collect();
        }
    }
}
