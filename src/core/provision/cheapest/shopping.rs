//! Carrying out purchases: which pods of a kind go on the node that was chosen for the kind.

use std::collections::BTreeSet;

use crate::provision::karpenter::place_on_open;
use crate::scheduler::Demand;
use crate::scheduler::vectors;
use crate::scheduler::{ClassIndex, Engine, HostIndex};

use super::market::{Market, Offer, Pattern};
use super::open_nodes::{add, open};

/// What still waits while a market is shopped on.
pub struct Shopping<'m, 'd> {
    market: &'m Market,
    demand: &'d mut Demand,
    /// By kind: pods that wait.
    waiting: Vec<usize>,
    /// Kinds with pods that wait, largest request first.
    kinds_waiting: Vec<usize>,
    /// Classes that topology kept from a node with room for them.
    held_back: BTreeSet<ClassIndex>,
}

impl<'m, 'd> Shopping<'m, 'd> {
    pub fn new(market: &'m Market, demand: &'d mut Demand) -> Self {
        let mut waiting = vec![0; market.kinds.len()];
        let mut kinds_waiting = BTreeSet::new();
        for (class, count) in demand.iter().filter(|(_, count)| **count > 0) {
            if let Some(kind) = market.kind_of.get(class) {
                waiting[*kind] += count;
                kinds_waiting.insert(*kind);
            }
        }
        let kinds_waiting = kinds_waiting.into_iter().collect();
        Self { market, demand, waiting, kinds_waiting, held_back: BTreeSet::new() }
    }

    pub fn is_done(&self) -> bool {
        self.kinds_waiting.is_empty()
    }

    pub fn waiting(&self, kind: usize) -> usize {
        self.waiting[kind]
    }

    pub fn kinds_waiting(&self) -> &[usize] {
        &self.kinds_waiting
    }

    /// Opens a node of the offer and puts the pattern on it, as far as topology lets it.
    pub fn realize(&mut self, engine: &mut Engine<'_, '_>, offer: &Offer, pattern: &Pattern) -> Option<HostIndex> {
        let mut host = None;
        for (kind, count) in pattern {
            let mut left = *count;
            for class in self.classes_waiting(*kind) {
                while left > 0 && self.waits(class) {
                    let placed = match host {
                        Some(host) => self.add(engine, class, host),
                        None => {
                            host = self.open(engine, class, offer);
                            host.is_some()
                        }
                    };
                    if !placed {
                        break;
                    }
                    left -= 1;
                }
                if left == 0 {
                    break;
                }
            }
        }
        self.forget_done();
        host
    }

    fn open(&mut self, engine: &mut Engine<'_, '_>, class: ClassIndex, offer: &Offer) -> Option<HostIndex> {
        let (variant, template) = (self.market.variants[&class], offer.template);
        let host = open(engine, class, variant, template, offer.instance_type, offer.slots);
        if host.is_some() {
            self.take_one(class);
        } else {
            self.held_back.insert(class);
        }
        host
    }

    fn add(&mut self, engine: &mut Engine<'_, '_>, class: ClassIndex, host: HostIndex) -> bool {
        let added = add(engine, class, self.market.variants[&class], host);
        if added {
            self.take_one(class);
        } else {
            self.held_back.insert(class);
        }
        added
    }

    /// Puts more of whatever waits on a node that was just opened.
    pub fn top_up(&mut self, engine: &mut Engine<'_, '_>, host: HostIndex) {
        for kind in self.kinds_waiting.clone() {
            let request = &self.market.kinds[kind].request;
            if !vectors::fits(request, engine.headroom(host)) {
                continue;
            }
            for class in self.classes_waiting(kind) {
                while self.waits(class) && self.add(engine, class, host) {}
                if !vectors::fits(request, engine.headroom(host)) {
                    break;
                }
            }
        }
        self.forget_done();
    }

    /// Constraints that held pods back may allow them on nodes opened before, now that there is another.
    pub fn place_held_back(&mut self, engine: &mut Engine<'_, '_>, first: HostIndex) {
        for class in std::mem::take(&mut self.held_back) {
            // What is counted by host does not change by opening another one.
            if looks_beyond_hosts(engine, self.market, class) {
                self.place_on_open(engine, first, class);
            }
        }
        self.forget_done();
    }

    /// The same for everything that could not be shopped for.
    pub fn place_all_waiting(&mut self, engine: &mut Engine<'_, '_>, first: HostIndex) {
        for kind in self.kinds_waiting.clone() {
            for class in self.classes_waiting(kind) {
                self.place_on_open(engine, first, class);
            }
        }
    }

    fn place_on_open(&mut self, engine: &mut Engine<'_, '_>, first: HostIndex, class: ClassIndex) {
        let variant = self.market.variants[&class];
        while self.waits(class) && place_on_open(engine, first, class, variant).is_some() {
            self.take_one(class);
        }
    }

    pub fn finish(self) {
        self.demand.retain(|_, count| *count > 0);
    }

    fn classes_waiting(&self, kind: usize) -> Vec<ClassIndex> {
        let classes = self.market.kinds[kind].classes.iter().copied();
        classes.filter(|class| self.waits(*class)).collect()
    }

    fn waits(&self, class: ClassIndex) -> bool {
        self.demand.get(&class).is_some_and(|count| *count > 0)
    }

    fn take_one(&mut self, class: ClassIndex) {
        if let Some(left) = self.demand.get_mut(&class) {
            *left = left.saturating_sub(1);
        }
        let waiting = &mut self.waiting[self.market.kind_of[&class]];
        *waiting = waiting.saturating_sub(1);
    }

    fn forget_done(&mut self) {
        let waiting = &self.waiting;
        self.kinds_waiting.retain(|kind| waiting[*kind] > 0);
    }
}

/// Whether a class has a constraint over something else than host names.
fn looks_beyond_hosts(engine: &Engine<'_, '_>, market: &Market, class: ClassIndex) -> bool {
    let problem = engine.problem;
    let own = problem.variants[market.variants[&class]].constraints.iter();
    let counted = problem.classes[class].counted_in.iter();
    own.chain(counted).any(|group| !problem.domains.is_hostname(problem.groups[*group].key))
}
