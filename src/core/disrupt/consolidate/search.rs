//! The search for moves worth making. [`super::keeping`] says which nodes go when all are looked at together, and where their pods
//! come to be.
//!
//! 1. Nodes that go are emptied as far as their pods find just those places.
//! 2. The others of them are replaced in groups, several at a time by fewer or cheaper ones; emptied onto whatever has room; and kept
//!    after all where neither is worth it, the best of them first.
//! 3. What is left is tried alone, with one cheaper node in its place.
//! 4. Groups of the worst-used are taken apart and bought for again, until the work is spent.
//!
//! Each failure is a certificate: a class that found no room finds none later in this plan, since room only shrinks, so most
//! nodes of a well-used cluster are refused by a comparison ([`FirstRoom`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use fixedbitset::FixedBitSet;

use crate::disrupt::candidate::Candidate;
use crate::disrupt::obstacle::NodeObstacle;
use crate::disrupt::pass::Pass;
use crate::disrupt::refused::Cause;
use crate::disrupt::rehome::Rooms;
use crate::disrupt::{Going, cost};
use crate::model::HourlyPrice;
use crate::programs::number;
use crate::provision::cheapest::WorkBudget;
use crate::provision::cheapest::greedy::Markets;
use crate::provision::cheapest::improve::Pools;
use crate::provision::cheapest::market::EXACT_PRICE_WORK;
use crate::scheduler::{ClassIndex, Engine, HostIndex};
use cutlist_api::node_pool::DisruptionReason;

use super::dual_prices::{DualPrices, demand};
use super::first_room::FirstRoom;
use super::keeping::Kept;
use super::nowhere::Nowhere;
use super::obstacle::{NoRoomFor, NotSaved};
use super::partners::{partners, sets};
use super::reference::no_place;
use super::rules::{NotKept, moved_nanodollars};
use super::trial::{Buying, fitting_without_preferences, without};
use super::{Refused, Source};

/// Nodes that are replaced together at most: more of them fit new nodes better, and stand or fall together.
const SET_NODES_MAX: usize = 12;

/// The same where moves have long to repay themselves and that saves more: it comes nearer to a fleet that is bought anew.
const LARGE_SET_NODES_MAX: usize = 48;

/// Moves that have as long as that to repay themselves are worth ten times the work, and sets of many nodes.
const LONG_HORIZON_SECONDS: i64 = 6 * 3_600;
const LONG_HORIZON_WORK_TIMES: u64 = 10;

/// Nodes that are taken apart together in the last phase.
const REGROUPED_NODES_MAX: usize = 4;

/// The part of the work that is left which one group may take in the last phase.
const REGROUPED_PART: u64 = 32;

/// Prices of pods are a guide here, so a part of the work that buying spends on them will do.
const PRICE_WORK_PART: u64 = 4;

/// A search for a small cluster ends when it has looked so often for each pod that may move; the rest of the work goes unused.
const LOOKS_PER_POD: u64 = 1_200;
const LOOKS_MIN: u64 = 400_000;

/// And when it has done this part of the work of a plan: a large cluster is looked at again soon, and what four times the work finds
/// there is a ten-thousandth of its price.
const SEARCH_PART: u64 = 4;

/// When pods of nodes that were chosen for removal do not fit, the search keeps one of so many of those nodes, and tries again.
const KEPT_PART: usize = 4;

/// How many times the cost of a move may count when it is decided which nodes are worth keeping. The program buys parts of nodes, so
/// where much is bought less comes of a plan than it promises, and keeping more saves more in the end; where few nodes are wrong for
/// all of their pods, it is best to be told so at once.
const COUNTED_AS_KEPT: [f64; 2] = [3.0, 1.0];

/// Less than this is shown as nothing, and mostly is what rounding leaves of a bound: half of a hundredth of a cent.
const SHOWN_MIN: HourlyPrice = HourlyPrice::from_nanodollars(50_000);

/// Where no payback is asked for, moves are compared over this time.
const HORIZON_SECONDS: i64 = 30 * 24 * 3_600;

impl Pass<'_, '_> {
    /// Tries what may save money and keeps what does.
    pub(super) fn search(&mut self, engine: &mut Engine<'_, '_>, sources: &[Source<'_>]) {
        let demand = demand(engine.problem, sources);
        let markets = Markets::priced(engine.problem, 0, &demand, EXACT_PRICE_WORK / PRICE_WORK_PART);
        let dual_prices = DualPrices::new(&markets);
        let pods: usize = demand.values().sum();
        let mut budget = WorkBudget::new(engine.problem);
        let of_pods = LOOKS_MIN + LOOKS_PER_POD * pods as u64;
        budget.looks = if self.has_long_horizon(sources) {
            budget.looks.min(of_pods.saturating_mul(LONG_HORIZON_WORK_TIMES))
        } else {
            (budget.looks / SEARCH_PART).min(of_pods)
        };
        let ways = self.ways(engine, sources, &markets);
        budget.looks /= ways.len() as u64;
        let (start, before, concentration_before) = (engine.mark(), self.clone(), engine.price_of_concentration());
        let horizon_seconds = self.horizon_seconds(sources);
        let go = |pass: &mut Self, engine: &mut Engine<'_, '_>, way: &Way<'_>| {
            engine.revert(start);
            *pass = before.clone();
            Search::new(pass, way.clone(), &markets, &dual_prices, engine).run(engine, &mut budget.clone());
            let concentration = (engine.price_of_concentration() - concentration_before).max(HourlyPrice::ZERO);
            let of_concentration = i128::from(concentration.nanodollars()) * i128::from(horizon_seconds);
            pass.gain_since(engine, &before, horizon_seconds) - of_concentration
        };
        let mut best: Option<(i128, usize)> = None;
        for (number, way) in ways.iter().enumerate() {
            let gain = go(self, engine, way);
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, number));
            }
        }
        if let Some((_, way)) = best.filter(|(_, way)| way + 1 < ways.len()) {
            go(self, engine, &ways[way]);
        }
    }

    /// Orders to try, of which nobody knows beforehand which is best.
    fn ways<'c>(&self, engine: &Engine<'_, '_>, sources: &[Source<'c>], markets: &Markets) -> Vec<Way<'c>> {
        let moving = self.dollars_of_move(sources);
        let kept = |counted: f64| Kept::new(engine, sources, &self.targets, markets, counted * moving);
        let kept: Vec<Kept> = self.counted_as_kept(sources).into_iter().filter_map(kept).collect();
        if kept.is_empty() {
            return vec![Way::least_used(engine, sources)];
        }
        let mut ways: Vec<Way<'c>> = kept.into_iter().map(|kept| Self::as_kept(sources, kept)).collect();
        if sources.len() <= SET_NODES_MAX && self.budgets_cut(sources) {
            // The program knows no budgets. A set that it would replace may use up what two nodes that can be emptied need.
            ways.push(Way::least_used(engine, sources));
        }
        if self.has_long_horizon(sources) && ways.iter().any(|way| way.has_large_sets(engine)) {
            let larger = |way: &Way<'c>| Way { set_nodes_max: LARGE_SET_NODES_MAX, ..way.clone() };
            ways.extend(ways.iter().map(larger).collect::<Vec<_>>());
        }
        ways
    }

    /// How many times the cost of a move counts in each of the programs.
    fn counted_as_kept(&self, sources: &[Source<'_>]) -> Vec<f64> {
        let [more, once] = COUNTED_AS_KEPT;
        let mut counted = vec![more];
        // More nodes than that are not replaced all together, whatever the program says.
        if sources.len() <= SET_NODES_MAX {
            counted.push(once);
        }
        if self.horizon_seconds(sources) > LONG_HORIZON_SECONDS {
            // As if they had to repay themselves as soon as that: what is kept is right at once, and the rest is another plan's.
            counted.push(more * hours(self.horizon_seconds(sources)) / hours(LONG_HORIZON_SECONDS));
        }
        counted
    }

    fn horizon_seconds(&self, sources: &[Source<'_>]) -> i64 {
        let going: Vec<_> = sources.iter().map(|source| source.candidate).collect();
        self.payback_seconds(&going).unwrap_or(HORIZON_SECONDS).clamp(1, HORIZON_SECONDS)
    }

    fn has_long_horizon(&self, sources: &[Source<'_>]) -> bool {
        self.horizon_seconds(sources) >= LONG_HORIZON_SECONDS
    }

    /// What the move of one pod costs in the mean, for each hour in which it has to repay itself.
    fn dollars_of_move(&self, sources: &[Source<'_>]) -> f64 {
        let pods: usize = sources.iter().map(|source| source.candidate.displaced().count()).sum();
        let of_all = sources.iter().map(|source| source.candidate.move_nanodollars).fold(0, i64::saturating_add);
        HourlyPrice::from_nanodollars(of_all).dollars() / hours(self.horizon_seconds(sources)) / number(pods.max(1))
    }

    /// What goes, and where its pods go, is as the linear program says.
    fn as_kept<'c>(sources: &[Source<'c>], kept: Kept) -> Way<'c> {
        let Kept { gains, goes, guide, allotments } = kept;
        let rooms = Rooms { guide: Rc::new(guide), allotments, ..Rooms::default() };
        let order = least_first(sources, &gains);
        Way {
            sources: order.iter().map(|source| sources[*source]).collect(),
            goes: order.iter().map(|source| goes[*source]).collect(),
            rooms,
            set_nodes_max: SET_NODES_MAX,
        }
    }

    /// While nodes come and go none is taken off: kube-scheduler chooses where the pods that move come to be, so room that seems left
    /// over is not, until they have moved.
    pub(super) fn only_wait(&mut self, sources: &[Source<'_>]) {
        for Source { candidate, .. } in sources {
            let refused = self.is_not_receiving(candidate).err().unwrap_or_else(|| NotSaved::MovesUnderWay.into());
            self.hold_back(candidate.host, refused);
        }
    }

    /// Whether budgets let fewer go than there are.
    fn budgets_cut(&self, sources: &[Source<'_>]) -> bool {
        let mut all: Vec<usize> = (0..sources.len()).collect();
        self.cut_to_budget(&mut all, sources);
        all.len() < sources.len()
    }

    /// The first of these sources, as many as budgets allow together.
    fn cut_to_budget(&self, set: &mut Vec<usize>, sources: &[Source<'_>]) {
        let mut ledger = self.disruption.budgets.clone();
        set.retain(|source| {
            let candidate = sources[*source].candidate;
            ledger.take(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted()).is_ok()
        });
    }

    /// What the moves since then save within the horizon, less what they cost once: billionths of a dollar, times 3,600.
    fn gain_since(&self, engine: &Engine<'_, '_>, before: &Self, horizon_seconds: i64) -> i128 {
        let mut gain: i128 = 0;
        for removal in self.disruption.removals.iter().skip(before.disruption.removals.len()) {
            let bought: HourlyPrice = removal.purchases.iter().map(|purchase| purchase.price).sum();
            let machine = |host: HostIndex| &engine.problem.machines[host];
            let of_node = |host| engine.problem.offer.price_of(self.inputs, machine(host)).unwrap_or_default();
            let gone: HourlyPrice = removal.nodes.iter().map(|going| of_node(going.host)).sum();
            let beside: HourlyPrice =
                removal.nodes.iter().map(|going| engine.problem.nodes[going.host].cost_beside).sum();
            let beside_new = engine.problem.cost_beside_new(removal.purchases.iter().map(|purchase| purchase.template));
            let leaving =
                |going: &Going| self.costs.of_leaving(engine.problem, going.host, of_node(going.host), &going.pods);
            let pods = removal.nodes.iter().map(leaving).fold(0, i64::saturating_add);
            let cost = self.costs.of_move(bought, pods, 0);
            gain += i128::from((gone + beside - bought - beside_new).nanodollars()) * i128::from(horizon_seconds);
            gain -= i128::from(cost) * 3_600;
        }
        gain
    }
}

/// An order in which sources are tried, and which of them go.
#[derive(Clone)]
struct Way<'c> {
    sources: Vec<Source<'c>>,
    goes: Vec<bool>,
    /// Where pods should go; nodes are not looked for yet.
    rooms: Rooms,
    /// Nodes that are replaced together at most.
    set_nodes_max: usize,
}

impl<'c> Way<'c> {
    /// The node of which the pods take least first, where nothing is known of what is better done without.
    fn least_used(engine: &Engine<'_, '_>, sources: &[Source<'c>]) -> Self {
        let mut sources = sources.to_vec();
        let used = |source: &Source<'_>| {
            cost::used_thousandths(engine.problem, source.candidate.host, source.candidate.displaced())
        };
        sources.sort_by_cached_key(|source| (used(source), Reverse(source.price), &source.candidate.name));
        Way { goes: vec![false; sources.len()], sources, rooms: Rooms::default(), set_nodes_max: SET_NODES_MAX }
    }

    /// Whether of those that may be one node more go than are replaced together.
    fn has_large_sets(&self, engine: &Engine<'_, '_>) -> bool {
        let mut going: BTreeMap<usize, usize> = BTreeMap::new();
        for (partners, _) in partners(engine, &self.sources).into_iter().zip(&self.goes).filter(|(_, goes)| **goes) {
            *going.entry(partners).or_default() += 1;
        }
        going.into_values().any(|going| going > self.set_nodes_max)
    }
}

/// Positions, the source that gains least by being kept first.
fn least_first(sources: &[Source<'_>], gains: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sources.len()).collect();
    let name = |source: usize| &sources[source].candidate.name;
    order.sort_by(|one, two| gains[*one].total_cmp(&gains[*two]).then_with(|| name(*one).cmp(name(*two))));
    order
}

#[expect(clippy::cast_precision_loss, reason = "a time in hours; fifteen digits are plenty for a guide")]
fn hours(seconds: i64) -> f64 {
    seconds as f64 / 3_600.0
}

/// What doing without some nodes can save, when new ones for pods without a place cost the least they can.
#[derive(Clone, Copy)]
struct AtMost {
    saving: HourlyPrice,
    bought: HourlyPrice,
}

/// Pods of a source that no other node has room for.
#[derive(Clone, Copy)]
struct Unplaceable {
    pods: usize,
    /// Those of them that other nodes would have room for if they gave up what they prefer.
    preferring: usize,
    /// Dollars per hour that they would cost on new nodes; `None` when there are some that can not be bought for.
    worth: Option<f64>,
}

struct Search<'s, 'c, 'p, 'a> {
    pass: &'s mut Pass<'p, 'a>,
    /// Those that are better done without first.
    sources: Vec<Source<'c>>,
    /// By source: whether it goes rather than being filled.
    goes: Vec<bool>,
    /// By source: classes of its pods, with how many pods there are of each.
    classes: Vec<Vec<(ClassIndex, usize)>>,
    /// By source: which others may be one node with it.
    partners: Vec<usize>,
    /// By source: a class of it that found no room when it was last asked for.
    refused: Vec<Option<ClassIndex>>,
    markets: &'s Markets,
    dual_prices: &'s DualPrices,
    first_room: FirstRoom,
    /// By source, as long as no node has gone since it was asked.
    unplaceable_of: BTreeMap<usize, Unplaceable>,
    nowhere: Nowhere,
    rooms: Rooms,
    set_nodes_max: usize,
    has_long_horizon: bool,
}

impl<'s, 'c, 'p, 'a> Search<'s, 'c, 'p, 'a> {
    fn new(
        pass: &'s mut Pass<'p, 'a>,
        way: Way<'c>,
        markets: &'s Markets,
        dual_prices: &'s DualPrices,
        engine: &Engine<'_, '_>,
    ) -> Self {
        let first_room = FirstRoom::new(engine.problem.classes.len());
        let Way { sources, goes, rooms, set_nodes_max } = way;
        let classes = sources.iter().map(|source| classes_of(engine, source.candidate)).collect();
        let (refused, partners) = (vec![None; sources.len()], partners(engine, &sources));
        let has_long_horizon = pass.has_long_horizon(&sources);
        Self {
            pass,
            sources,
            goes,
            classes,
            partners,
            refused,
            markets,
            dual_prices,
            first_room,
            unplaceable_of: BTreeMap::new(),
            nowhere: Nowhere::default(),
            rooms,
            set_nodes_max,
            has_long_horizon,
        }
    }

    fn run(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) {
        self.find_rooms(engine);
        self.empty_as_allotted(engine, budget);
        self.replace_sets(engine, budget);
        self.empty_nodes(engine, budget);
        self.keep_the_best(engine, budget);
        let refusals = self.one_by_one(engine, budget);
        self.regroup(engine, budget);
        for (source, refused) in refusals {
            let host = self.sources[source].candidate.host;
            if !self.pass.done.contains(&host) {
                let refused = self.pass.is_not_receiving(self.sources[source].candidate).err().unwrap_or(refused);
                self.pass.hold_back(host, refused);
            }
        }
    }

    /// Nodes that may take pods: those that stay anyway are filled first, then the sources that are best used.
    fn find_rooms(&mut self, engine: &Engine<'_, '_>) {
        let sources: BTreeSet<HostIndex> = self.sources.iter().map(|source| source.candidate.host).collect();
        let targets = &self.pass.targets;
        let takes_pods = |host: &HostIndex| targets[*host].is_open_to_consolidation();
        let is_filled = |host: &HostIndex| takes_pods(host) && (!sources.contains(host) || targets[*host].receives);
        let filling: FixedBitSet = engine.existing_hosts().filter(is_filled).map(usize::from).collect();
        let mut next = Vec::new();
        let open: Vec<HostIndex> = (0..self.sources.len())
            .rev()
            .filter(|source| self.is_open(*source) && !self.goes[*source])
            .map(|source| self.sources[source].candidate.host)
            .filter(takes_pods)
            .collect();
        for part in [8, 4, 2, 1] {
            next.push(open.iter().take(open.len().div_ceil(part)).map(|host| usize::from(*host)).collect());
        }
        let quiet_soon = |host: &HostIndex| targets[*host].is_open() && targets[*host].recently_changed;
        self.rooms.recently_changed = engine.existing_hosts().filter(quiet_soon).map(usize::from).collect();
        (self.rooms.filling, self.rooms.next) = (filling, next);
        self.unplaceable_of.clear();
    }

    /// Neither going nor filled by this plan.
    fn is_open(&self, source: usize) -> bool {
        let host = self.sources[source].candidate.host;
        !self.pass.done.contains(&host) && !self.pass.targets[host].receives
    }

    fn is_within_budget(&self, source: usize) -> bool {
        let candidate = self.sources[source].candidate;
        let budgets = &self.pass.disruption.budgets;
        budgets.check(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted()).is_ok()
    }

    /// Whether a set was done without for good.
    fn try_set(
        &mut self,
        engine: &mut Engine<'_, '_>,
        sources: &[Source<'_>],
        buying: Buying<'_>,
    ) -> Result<(), NotKept> {
        let mut rooms = self.rooms.clone();
        let trial = without(engine, sources, &mut rooms, buying)
            .map_err(|without_room| NotKept::Refused(no_place(engine, sources[0], without_room)))?;
        self.pass.keep(engine, sources, &trial)?;
        self.rooms = rooms;
        self.unplaceable_of.clear();
        Ok(())
    }

    fn empty_nodes(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) {
        for source in 0..self.sources.len() {
            if !self.is_open(source) || !self.is_within_budget(source) {
                continue;
            }
            if !self.has_unplaceable(engine, source) {
                budget.spend_on_pods(self.sources[source].candidate.pods.len());
                // A reason is found later, when it is tried with a new node.
                let _ = self.try_set(engine, &[self.sources[source]], Buying::Nothing);
            }
        }
    }

    /// Nodes that go whose pods all find the place that they are allotted. One zone may take its pods only after another has got some,
    /// so those that are refused are tried again while others are not. Half of the work is left for sets, which save more in large clusters.
    fn empty_as_allotted(&mut self, engine: &mut Engine<'_, '_>, of_all: &mut WorkBudget) {
        let most = of_all.looks / 2;
        let mut budget = WorkBudget { looks: most, ..*of_all };
        self.rooms.only_allotted = true;
        let mut going: Vec<usize> = (0..self.sources.len()).filter(|source| self.goes[*source]).collect();
        loop {
            let before = going.len();
            going.retain(|source| {
                let is_possible = self.is_open(*source) && self.is_within_budget(*source) && !budget.is_spent();
                budget.spend_on_pods(self.sources[*source].candidate.pods.len());
                is_possible && self.try_set(engine, &[self.sources[*source]], Buying::Nothing).is_err()
            });
            if going.len() == before {
                break;
            }
        }
        self.rooms.only_allotted = false;
        of_all.spend(most - budget.looks);
    }

    /// What should go and finds no room is kept after all, a part at a time, the best first, and filled with the rest; all that is
    /// left when the work is spent.
    fn keep_the_best(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) {
        loop {
            let going = (0..self.sources.len()).rev().filter(|source| self.goes[*source] && self.is_open(*source));
            let going: Vec<usize> = going.collect();
            if going.is_empty() {
                return;
            }
            let part = if budget.is_spent() { 1 } else { KEPT_PART };
            for source in going.iter().take(going.len().div_ceil(part)) {
                self.goes[*source] = false;
            }
            self.first_room = FirstRoom::new(engine.problem.classes.len());
            self.find_rooms(engine);
            self.empty_nodes(engine, budget);
        }
    }

    /// Classes on a source of which no pod fits on any other node, with how many pods of it there are.
    fn unplaceable(&mut self, engine: &Engine<'_, '_>, source: usize) -> Vec<(ClassIndex, usize)> {
        let host = self.sources[source].candidate.host;
        let (first_room, rooms) = (&mut self.first_room, &self.rooms);
        let classes = self.classes[source].iter().copied();
        classes.filter(|(class, _)| !first_room.any_room(engine, *class, host, rooms)).collect()
    }

    /// Whether there are such pods. Those that found no room the last time mostly find none now, so that one look is enough.
    fn has_unplaceable(&mut self, engine: &Engine<'_, '_>, source: usize) -> bool {
        let host = self.sources[source].candidate.host;
        let (first_room, rooms) = (&mut self.first_room, &self.rooms);
        let mut is_unplaceable = |class: &ClassIndex| !first_room.any_room(engine, *class, host, rooms);
        if self.refused[source].as_ref().is_some_and(&mut is_unplaceable) {
            return true;
        }
        self.refused[source] = self.classes[source].iter().map(|(class, _)| *class).find(is_unplaceable);
        self.refused[source].is_some()
    }

    /// Replaces nodes that are wrong for what they cost, in groups as large as budgets allow.
    fn replace_sets(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) {
        let going = (0..self.sources.len()).filter(|source| self.goes[*source]);
        let pool = |source: usize| self.sources[source].candidate.pool.as_str();
        let sets_of_nodes = sets(going, pool, &self.partners, self.set_nodes_max);
        let mut sets = sets_of_nodes.len() as u64;
        for set in sets_of_nodes {
            let mut waiting = vec![set];
            while let Some(mut set) = waiting.pop() {
                if budget.is_spent() {
                    return;
                }
                set.retain(|source| self.is_open(*source));
                self.pass.cut_to_budget(&mut set, &self.sources);
                if set.is_empty() {
                    continue;
                }
                // The rest is for what comes after.
                let tried = self.buy_for(engine, &set, 2 * sets, budget);
                sets = sets.saturating_sub(1).max(1);
                match tried {
                    Ok(()) => set.iter().for_each(|source| self.goes[*source] = false),
                    Err(NotKept::LikeThese(hosts)) => {
                        let before = set.len();
                        set.retain(|source| !hosts.contains(&self.sources[*source].candidate.host));
                        if (1..before).contains(&set.len()) {
                            waiting.push(set);
                        }
                    }
                    Err(NotKept::Refused(_)) if set.len() > 1 => {
                        let (first, second) = self.split(set);
                        waiting.push(second);
                        waiting.push(first);
                    }
                    Err(NotKept::Refused(_)) => {}
                }
            }
        }
    }

    /// A set in two: one pool and the others, else two halves.
    fn split(&self, set: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
        let half = set.len() / 2;
        let pool = |source: &usize| &self.sources[*source].candidate.pool;
        let is_of_first = |source: &usize| set.first().is_some_and(|first| pool(first) == pool(source));
        let (first, others): (Vec<usize>, Vec<usize>) = set.iter().partition(|source| is_of_first(source));
        if !others.is_empty() {
            return (first, others);
        }
        let (first, second) = set.split_at(half);
        (first.to_vec(), second.to_vec())
    }

    /// `part`: of the work that is left, how many such sets it has to do for.
    fn buy_for(
        &mut self,
        engine: &mut Engine<'_, '_>,
        set: &[usize],
        part: u64,
        budget: &mut WorkBudget,
    ) -> Result<(), NotKept> {
        let set: Vec<Source<'_>> = set.iter().map(|source| self.sources[*source]).collect();
        let markets = self.markets;
        budget.spend_on_pods(set.iter().map(|source| source.candidate.pods.len()).sum());
        let looks = budget.looks / part.max(1);
        let mut of_set = WorkBudget { looks, ..*budget };
        let tried =
            self.try_set(engine, &set, Buying::Nodes { markets, budget: &mut of_set, as_fleet: self.has_long_horizon });
        budget.spend(looks - of_set.looks);
        tried
    }

    /// Every node that is left alone, with one cheaper node in its place; why those stay that stay.
    fn one_by_one(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) -> Vec<(usize, Refused)> {
        let mut refusals = Vec::new();
        for source in 0..self.sources.len() {
            let Source { candidate, .. } = self.sources[source];
            let cost = self.sources[source].cost();
            if self.pass.done.contains(&candidate.host) {
                continue;
            }
            if let Err(refused) = self.pass.is_not_receiving(candidate) {
                refusals.push((source, refused));
                continue;
            }
            let bound = self.saving_at_most(engine, &[source]);
            if !self.is_within_budget(source) {
                refusals.push((source, self.over_budget(source, bound)));
                continue;
            }
            let pays = bound.is_some_and(|bound| self.could_pay(&[source], bound));
            let refused = if pays {
                budget.spend_on_pods(candidate.pods.len());
                let buying = Buying::OneNode { pools: Pools::OfWeight(candidate.weight), most: cost };
                let refused = self.try_set(engine, &[self.sources[source]], buying).err();
                refused.map(|not_kept| self.or_limit(engine, source, not_kept, budget))
            } else {
                Some(NotKept::Refused(self.not_cheaper(engine, source, bound)))
            };
            refusals.extend(refused.map(|not_kept| (source, not_kept.into_refused())));
        }
        refusals
    }

    /// Why a node stays that found no place: the limit that keeps a cheaper one from being bought, where it is that.
    fn or_limit(
        &self,
        engine: &mut Engine<'_, '_>,
        source: usize,
        not_kept: NotKept,
        budget: &mut WorkBudget,
    ) -> NotKept {
        let is_without_room = |refused: &Refused| {
            let obstacle = refused.obstacle.as_ref();
            matches!(obstacle, NodeObstacle::NotSaved(NotSaved::NoRoom(NoRoomFor::OneCheaperNode { .. })))
        };
        match &not_kept {
            NotKept::Refused(refused) if is_without_room(refused) => {}
            _ => return not_kept,
        }
        budget.spend_on_pods(self.sources[source].candidate.pods.len());
        let limit = self.pass.limit_in_the_way(engine, self.sources[source], &self.rooms);
        limit.map_or(not_kept, |limit| NotSaved::Limit(Box::new(limit)).into())
    }

    fn over_budget(&self, source: usize, bound: Option<AtMost>) -> Refused {
        let candidate = self.sources[source].candidate;
        let budgets = &self.pass.disruption.budgets;
        let refused = budgets.check(&candidate.pool, DisruptionReason::Underutilized, candidate.price_counted());
        match refused.err().zip(bound) {
            Some((refused, AtMost { saving, .. })) if saving > HourlyPrice::ZERO => {
                refused.although(Cause::Saving { at_most: saving })
            }
            _ => NotSaved::NoRoom(NoRoomFor::Any).into(),
        }
    }

    fn not_cheaper(&mut self, engine: &Engine<'_, '_>, source: usize, bound: Option<AtMost>) -> Refused {
        let candidate = self.sources[source].candidate;
        let limit = self.pass.payback_seconds(&[candidate]);
        if let Some((AtMost { saving, bought }, limit)) = bound.zip(limit).filter(|(it, _)| it.saving >= SHOWN_MIN) {
            let cost = self.pass.costs.of_move(bought, candidate.move_nanodollars, 0);
            let seconds = cost::payback_seconds(saving, cost).unwrap_or(i64::MAX);
            return NotSaved::Payback { saving, is_bound: true, seconds, limit_seconds: limit }.into();
        }
        if self.sources[source].cost() <= HourlyPrice::ZERO {
            return NotSaved::CostsNothing.into();
        }
        let of = candidate.displaced().count();
        let Unplaceable { pods, preferring, worth } = self.unplaceable_of(engine, source);
        if worth.is_none() {
            let unplaceable = self.unplaceable(engine, source);
            if let Some(nowhere) = self.nowhere.obstacle(engine, unplaceable, of, self.pass.inputs.places) {
                return nowhere.into();
            }
        }
        let classes = &engine.problem.classes;
        let prefers = |(class, _): &(ClassIndex, usize)| classes[*class].variants.len() > classes[*class].alternatives;
        let no_room = NoRoomFor::other_nodes(pods, of, preferring, self.classes[source].iter().any(prefers));
        NotSaved::NoRoom(no_room).into()
    }

    /// The price of the nodes, less what those pods would cost on new ones that no other node has room for; `None` when there are
    /// some that can not be bought for. One comparison for each class.
    fn saving_at_most(&mut self, engine: &Engine<'_, '_>, set: &[usize]) -> Option<AtMost> {
        let mut at_most = AtMost { saving: HourlyPrice::ZERO, bought: HourlyPrice::ZERO };
        for source in set {
            let bought = self.unplaceable_of(engine, *source).worth?;
            let cost = self.sources[*source].cost();
            let bought = HourlyPrice::from_dollars(bought * (1.0 - 1e-9)).unwrap_or(HourlyPrice::MAX);
            at_most.saving += cost - bought;
            at_most.bought += bought;
        }
        Some(at_most)
    }

    fn unplaceable_of(&mut self, engine: &Engine<'_, '_>, source: usize) -> Unplaceable {
        if let Some(known) = self.unplaceable_of.get(&source) {
            return *known;
        }
        let host = self.sources[source].candidate.host;
        let unplaceable = self.unplaceable(engine, source);
        let of_class = |(class, count): &(ClassIndex, usize)| Some(self.dual_prices.of(*class)? * number(*count));
        let worth = unplaceable.iter().map(of_class).sum();
        let preferring = fitting_without_preferences(engine, unplaceable.iter().copied(), &self.rooms, Some(host));
        let unplaceable = Unplaceable { pods: unplaceable.iter().map(|(_, count)| count).sum(), preferring, worth };
        self.unplaceable_of.insert(source, unplaceable);
        unplaceable
    }

    /// Whether a saving, if it can be had, would repay the move.
    fn could_pay(&self, set: &[usize], AtMost { saving, bought }: AtMost) -> bool {
        let going: Vec<_> = set.iter().map(|source| self.sources[*source].candidate).collect();
        // A single one may be replaced by a single one.
        let pods = moved_nanodollars(&going, 1);
        let limit = self.pass.payback_seconds(&going);
        let cost = self.pass.costs.of_move(bought, pods, 0);
        saving > HourlyPrice::ZERO
            && limit.is_none_or(|limit| cost::payback_seconds(saving, cost).is_some_and(|seconds| seconds <= limit))
    }

    /// Takes the worst-used nodes apart in groups of neighbours, and buys for their pods again.
    fn regroup(&mut self, engine: &mut Engine<'_, '_>, budget: &mut WorkBudget) {
        let mut found = true;
        while found && !budget.is_spent() {
            found = false;
            for size in 1..=REGROUPED_NODES_MAX {
                let mut open: Vec<usize> = (0..self.sources.len())
                    .filter(|source| self.is_open(*source) && self.is_within_budget(*source))
                    .collect();
                // Neighbours are those that may be one node.
                open.sort_by_key(|source| (self.partners[*source], *source));
                let mut first = 0;
                while first + size <= open.len() && !budget.is_spent() {
                    let set = &open[first..first + size];
                    // An earlier group may have taken one of them, or given it pods.
                    if let Some(taken) = set.iter().rposition(|source| !self.is_open(*source)) {
                        first += taken + 1;
                        continue;
                    }
                    let bound = self.saving_at_most(engine, set);
                    budget.spend(size as u64);
                    let pays = bound.is_some_and(|bound| self.could_pay(set, bound));
                    if pays && self.buy_for(engine, set, REGROUPED_PART, budget).is_ok() {
                        found = true;
                        first += size;
                    } else {
                        first += 1;
                    }
                }
            }
        }
    }
}

fn classes_of(engine: &Engine<'_, '_>, candidate: &Candidate) -> Vec<(ClassIndex, usize)> {
    let mut classes: BTreeMap<ClassIndex, usize> = BTreeMap::new();
    for class in candidate.displaced().filter_map(|pod| engine.problem.class_of_pod[pod]) {
        *classes.entry(class).or_default() += 1;
    }
    classes.into_iter().collect()
}
