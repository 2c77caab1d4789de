//! The reference's two methods: a prefix of the candidates for one node or none, then one candidate at a time.
//! Behaviour: reference, section 4.4. Unlike there every candidate is examined, and one plan holds all moves.

use crate::disrupt::pass::Pass;
use crate::disrupt::rehome::Rooms;
use crate::model::HourlyPrice;
use crate::provision::cheapest::improve::Pools;
use crate::scheduler::{Engine, HostIndex, Refusal};
use cutlist_api::keys;
use cutlist_api::node_pool::DisruptionReason;
use cutlist_api::settings::Packing;

use super::obstacle::{LimitInTheWay, NoRoomFor, NotSaved};
use super::rules::NotKept;
use super::trial::{Buying, NoRoom, Trial, without};
use super::{Refused, Source};

/// Source: the reference's limit on the candidates of a multi-node consolidation.
const PREFIX_MAX: usize = 100;

impl Pass<'_, '_> {
    pub(super) fn as_reference(&mut self, engine: &mut Engine<'_, '_>, sources: &[Source<'_>]) {
        let mut sources = sources.to_vec();
        let ratio = |source: &Source<'_>| source.price.dollars() / source.candidate.disruption_cost;
        sources.sort_by(|one, two| {
            ratio(two).total_cmp(&ratio(one)).then_with(|| one.candidate.name.cmp(&two.candidate.name))
        });
        self.longest_prefix(engine, &sources);
        for source in sources {
            if self.done.contains(&source.candidate.host) {
                continue;
            }
            if let Err(refused) = self.one_at_a_time(engine, source) {
                self.hold_back(source.candidate.host, refused);
            }
        }
    }

    /// The longest prefix, found by bisection, whose pods fit on other nodes and one new node.
    fn longest_prefix(&mut self, engine: &mut Engine<'_, '_>, sources: &[Source<'_>]) {
        let mut ledger = self.disruption.budgets.clone();
        let within_budgets = sources.iter().filter(|source| {
            let candidate = source.candidate;
            ledger.take(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted()).is_ok()
        });
        let within_budgets: Vec<Source<'_>> = within_budgets.copied().take(PREFIX_MAX).collect();
        let (mut longest, mut shortest_that_fails) = (1, within_budgets.len() + 1);
        while longest + 1 < shortest_that_fails {
            let middle = usize::midpoint(longest, shortest_that_fails);
            let prefix = &within_budgets[..middle];
            let found = self.try_prefix(engine, prefix).is_some_and(|trial| {
                engine.revert(trial.mark);
                true
            });
            if found {
                longest = middle;
            } else {
                shortest_that_fails = middle;
            }
        }
        if longest < 2 {
            return;
        }
        let prefix = &within_budgets[..longest];
        if let Some(trial) = self.try_prefix(engine, prefix) {
            // What the rules refuse of the prefix is tried one by one.
            let _ = self.keep(engine, prefix, &trial);
        }
    }

    fn try_prefix(&self, engine: &mut Engine<'_, '_>, prefix: &[Source<'_>]) -> Option<Trial> {
        let before: HourlyPrice = prefix.iter().map(Source::cost).sum();
        let buy = |engine: &mut Engine<'_, '_>, most| {
            without(engine, prefix, &mut self.all_rooms(engine), Buying::OneNode { pools: Pools::FirstInOrder, most })
                .ok()
        };
        let trial = buy(engine, before)?;
        match cheapest_alike(engine, prefix, &trial) {
            None => Some(trial),
            // Of the same type only if it costs less than each that goes; else that one would do.
            Some(most) => {
                engine.revert(trial.mark);
                buy(engine, most)
            }
        }
    }

    pub(super) fn one_at_a_time(&mut self, engine: &mut Engine<'_, '_>, source: Source<'_>) -> Result<(), Refused> {
        self.is_not_receiving(source.candidate)?;
        let mut rooms = self.all_rooms(engine);
        let buying = Buying::OneNode { pools: Pools::FirstInOrder, most: source.cost() };
        let trial = without(engine, &[source], &mut rooms, buying);
        let trial = trial.map_err(|without_room| match self.limit_in_the_way(engine, source, &rooms) {
            Some(limit) => NotSaved::Limit(Box::new(limit)).into(),
            None => no_place(engine, source, without_room),
        })?;
        self.keep(engine, &[source], &trial).map_err(NotKept::into_refused)
    }

    /// Of which pools a node in the place of this one may be.
    fn pools(&self, source: Source<'_>) -> Pools {
        match self.inputs.policy.packing {
            Packing::Karpenter => Pools::FirstInOrder,
            Packing::Cheapest => Pools::OfWeight(source.candidate.weight),
        }
    }

    /// The limit but for which one cheaper node would do instead of this one; the engine is as it was.
    pub(super) fn limit_in_the_way(
        &self,
        engine: &mut Engine<'_, '_>,
        source: Source<'_>,
        rooms: &Rooms,
    ) -> Option<LimitInTheWay> {
        if !engine.is_near_limits() {
            return None;
        }
        let buying = Buying::OneNode { pools: self.pools(source), most: source.cost() };
        engine.ignore_limits(true);
        let trial = without(engine, &[source], &mut rooms.clone(), buying);
        engine.ignore_limits(false);
        let trial = trial.ok()?;
        let opened = engine.open_hosts_since(trial.mark).find(|host| !engine.is_closed(*host));
        let found = opened.and_then(|host| {
            let refusal = engine.limit_refusal(host)?;
            let open = engine.open_node(host)?;
            let template = &engine.problem.templates[open.template];
            let (instance_type, ..) = template.offerings.cheapest(&open.set)?;
            let Refusal::Limit { scope, resource, limit, used, needed } = refusal else { return None };
            Some(LimitInTheWay {
                scope,
                node_pool: template.name.clone(),
                resource,
                limit,
                used,
                needed,
                instance_type: template.offerings.types[instance_type].name.clone(),
                saving: trial.before - trial.bought + trial.saved_beside,
            })
        });
        let pays = self.check_payback(&[source.candidate], &trial, HourlyPrice::ZERO, 0).is_ok();
        engine.revert(trial.mark);
        found.filter(|_| pays)
    }

    /// Every node that may take pods, in the order of the engine.
    pub(super) fn all_rooms(&self, engine: &Engine<'_, '_>) -> Rooms {
        let is_open = |host: &HostIndex| self.targets[*host].is_open_to_consolidation();
        Rooms { filling: engine.existing_hosts().filter(is_open).map(usize::from).collect(), ..Rooms::default() }
    }
}

pub(super) fn no_place(engine: &Engine<'_, '_>, source: Source<'_>, without_room: NoRoom) -> Refused {
    match without_room {
        NoRoom::Pods { all: pods, preferring } => {
            let (of, weight) = (source.candidate.displaced().count(), source.candidate.weight);
            let mut templates = engine.problem.templates.iter();
            let weight_least = templates.any(|it| !it.is_static() && it.weight < weight).then_some(weight);
            NotSaved::NoRoom(NoRoomFor::OneCheaperNode { pods, of, preferring, weight_least }).into()
        }
        NoRoom::RoomSoon => NotSaved::RoomSoon.into(),
    }
}

/// The least that a node of the prefix costs whose type the new node has.
fn cheapest_alike(engine: &Engine<'_, '_>, prefix: &[Source<'_>], trial: &Trial) -> Option<HourlyPrice> {
    let open = engine.open_hosts_since(trial.mark).find(|host| !engine.is_closed(*host))?;
    let open = engine.open_node(open)?;
    let (instance_type, ..) = engine.problem.templates[open.template].offerings.cheapest(&open.set)?;
    let name = &engine.problem.templates[open.template].offerings.types[instance_type].name;
    let type_of = |source: &&Source<'_>| engine.problem.machines[source.candidate.host].label(keys::INSTANCE_TYPE);
    let alike = prefix.iter().filter(|source| type_of(source) == Some(name)).map(|source| source.price).min();
    alike.filter(|least| trial.bought >= *least)
}
