//! The cheapest fleet: asks which mix of pods makes a type worth its price, instead of asking, after the mix has come
//! about, which type is cheapest for it.
//!
//! [`weights`] and the programs of [`crate::programs`] say what a pod is worth and what a node is then filled with; [`planned`]
//! chooses whole fleets, and what is too much for it [`greedy`] buys node by node, the one with the most worth per dollar first;
//! [`improve`] takes some apart and tries again. The reference's packing is run too, and the cheaper of the two wins, so that the price
//! is never above it. [`free_room`] says who gets room that is there.
//!
//! Pods that topology binds to zones are sent there first; then a program of whole nodes says what to buy in each. Consolidation asks a
//! program of its own which nodes are worth keeping (`core/disrupt/consolidate/keeping`).
#![doc = include_str!("what_was_tried.md")]

mod free_room;
pub mod greedy;
pub mod improve;
pub mod kinds;
pub mod market;
pub mod node_filling;
pub mod open_nodes;
pub mod planned;
mod shopping;
pub mod weights;
mod worth_bound;
pub mod zones;

use crate::model::HourlyPrice;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Mark, Problem};

use super::choice::cost_of_open;
use super::karpenter::{self, Cursor, place_on_existing};
use super::static_capacity;
use crate::scheduler::Demand;

use greedy::Markets;
use market::EXACT_PRICE_WORK;
use planned::Plans;

/// How much search is done: counted in looks at what a node could hold of one kind, so that the result does not depend on
/// how fast the machine is. How many: [`cutlist_api::settings::Settings::search_work`].
#[derive(Clone, Copy, Debug)]
pub struct WorkBudget {
    pub looks: u64,
    /// Whether pods are left without nodes when it is spent, and not only without the best.
    pub ends_purchases: bool,
    /// When it was spent: groups of new nodes that were not taken apart in the round it ended in.
    pub not_tried: usize,
}

/// Placing a pod takes about as long as so many looks.
const LOOKS_PER_POD: u64 = 20;

impl WorkBudget {
    pub fn new(problem: &Problem<'_>) -> Self {
        Self { looks: problem.search_work, ends_purchases: false, not_tried: 0 }
    }

    pub fn spend(&mut self, looks: u64) {
        self.looks = self.looks.saturating_sub(looks);
    }

    pub fn spend_on_pods(&mut self, pods: usize) {
        self.spend((pods as u64).saturating_mul(LOOKS_PER_POD));
    }

    pub fn is_spent(&self) -> bool {
        self.looks == 0
    }

    /// Something that is given up when it takes half of what is left.
    fn half(&mut self, what: impl FnOnce(&mut Self)) {
        let most = self.looks / 2;
        let mut half = Self { looks: most, ends_purchases: true, ..*self };
        what(&mut half);
        self.spend(most - half.looks);
    }
}

/// Places the demand; what is left found no place. Where concentration counts, once without regard to them and once avoiding them, and the
/// cheaper stays: a penalty never leaves a pod without a place.
pub fn pack(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand, budget: &mut WorkBudget) -> Demand {
    if engine.problem.concentration.is_none() {
        return pack_once(engine, order, demand, budget);
    }
    let mark = engine.mark();
    let start = *budget;
    let go = |engine: &mut Engine<'_, '_>, avoids: bool| {
        let mut budget = start;
        engine.avoid_concentration(avoids);
        let leftover = pack_once(engine, order, demand, &mut budget);
        engine.avoid_concentration(false);
        (cost(engine, &leftover), leftover, budget)
    };
    let (together, ..) = go(engine, false);
    engine.revert(mark);
    let mut best = go(engine, true);
    if together <= best.0 {
        engine.revert(mark);
        best = go(engine, false);
    }
    *budget = best.2;
    best.1
}

/// Places the demand, level by level of preferences; what is left found no place at any level.
fn pack_once(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand, budget: &mut WorkBudget) -> Demand {
    let problem = engine.problem;
    let levels = demand.keys().map(|class| problem.classes[*class].variants.len()).max().unwrap_or(0);
    // Nodes that are created anyway.
    let is_static = |host: &HostIndex| {
        engine.open_node(*host).is_some_and(|open| engine.problem.templates[open.template].is_static())
    };
    let on_their_way: Vec<HostIndex> = engine.open_hosts().filter(is_static).collect();
    let mut leftover = demand.clone();
    for level in 0..levels {
        let wanted: Demand = leftover
            .iter()
            .filter(|(class, _)| problem.classes[**class].variants.len() > level)
            .map(|(class, count)| (*class, *count))
            .collect();
        if wanted.is_empty() {
            continue;
        }
        let left = place_at(engine, order, level, &on_their_way, &wanted, budget);
        for (class, count) in wanted {
            let unplaced = left.get(&class).copied().unwrap_or(0);
            if let Some(left) = leftover.get_mut(&class) {
                *left -= count - unplaced;
            }
        }
        leftover.retain(|_, count| *count > 0);
    }
    // What the search left out may still find a place pod by pod, for example when a limit has room for smaller nodes only.
    let mark = engine.mark();
    engine.avoid_concentration(false);
    let leftover = last_resort(engine, order, &leftover);
    for host in engine.open_hosts().filter(|host| *host >= mark.hosts()) {
        improve::tighten(engine, host);
    }
    leftover
}

/// Pod by pod. What then is left is placed as kube-scheduler would: spread over what has a node, and where others may be in the way
/// of pods that wait, if it takes those first. That runs at once or later; a pod that waits for a better plan does not.
fn last_resort(engine: &mut Engine<'_, '_>, order: &[ClassIndex], demand: &Demand) -> Demand {
    let mut leftover = karpenter::pack(engine, order, demand);
    let spreads = |class: &ClassIndex| {
        let pods = &engine.problem.classes[*class];
        !pods.spreads.is_empty() || !engine.problem.spreading.of_others(*class).is_empty()
    };
    if leftover.keys().any(spreads) {
        engine.counting_nodes_alone(|engine| {
            leftover = karpenter::pack(engine, order, &leftover);
            let held = engine.hold_in_any_order(false);
            leftover = karpenter::pack(engine, order, &leftover);
            engine.hold_in_any_order(held);
        });
    }
    leftover
}

/// Places pods at one level of preferences, in the room that is there and on new nodes; what is left found no place.
fn place_at(
    engine: &mut Engine<'_, '_>,
    order: &[ClassIndex],
    level: usize,
    on_their_way: &[HostIndex],
    wanted: &Demand,
    budget: &mut WorkBudget,
) -> Demand {
    let start = engine.mark();
    let use_room = |engine: &mut Engine<'_, '_>, wanted: &mut Demand| {
        use_existing(engine, order, level, wanted);
        static_capacity::use_room(engine, on_their_way, level, wanted);
    };
    let mut in_order = wanted.clone();
    use_room(engine, &mut in_order);
    if in_order.is_empty() {
        return in_order;
    }
    if in_order != *wanted {
        let of_reference = as_reference(engine, order, level, &in_order);
        let most = cost(engine, &of_reference);
        engine.revert(start);
        if let Some(left) = free_room::fill_if_cheaper(engine, level, wanted, &in_order, use_room) {
            let left = if left.is_empty() { left } else { buy(engine, order, level, &left, budget) };
            if cost(engine, &left) <= most {
                return left;
            }
            engine.revert(start);
        }
        use_room(engine, &mut wanted.clone());
    }
    buy(engine, order, level, &in_order, budget)
}

/// Uses the room that is there in the order of the reference: it is paid for.
fn use_existing(engine: &mut Engine<'_, '_>, order: &[ClassIndex], level: usize, wanted: &mut Demand) {
    for class in order {
        let Some(count) = wanted.get_mut(class) else { continue };
        let variant = engine.problem.classes[*class].variants[level];
        let mut cursor = Cursor::new(engine, *class);
        while *count > 0 && place_on_existing(engine, *class, variant, &mut cursor).is_some() {
            *count -= 1;
        }
    }
    wanted.retain(|_, count| *count > 0);
}

/// How good a purchase is; smaller is better: pods left out, then what nodes cost with penalties, then nodes.
type Cost = (usize, HourlyPrice, usize);

fn cost(engine: &Engine<'_, '_>, leftover: &Demand) -> Cost {
    let nodes = engine.open_hosts().filter(|host| !engine.is_closed(*host)).count();
    (leftover.values().sum(), cost_of_open(engine) + engine.price_of_concentration(), nodes)
}

/// Ways to buy for a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Pod by pod, so that the price is never above the reference's.
    AsReference,
    /// Whole nodes by column generation.
    AsPlanned,
    /// Whole nodes as the linear program would buy them, then by worth, with the program solved again for what is left, several times.
    InRounds,
    /// The same, once.
    AsAllotted,
    /// By worth alone.
    ByWorth,
}

/// What is to be bought, and where.
struct Procurement<'w> {
    markets: Markets,
    /// Where the program of whole nodes is not used for all: the same with prices that purchases can go by.
    exact: Option<Markets>,
    plans: Plans,
    /// Whether all that is wanted has found a node on paper and in the cluster.
    is_met_as_planned: bool,
    order: &'w [ClassIndex],
    level: usize,
    wanted: &'w Demand,
    mark: Mark,
}

impl Procurement<'_> {
    /// Buys in one way instead of those before it; what is left found no place.
    fn attempt(&mut self, engine: &mut Engine<'_, '_>, way: Way, budget: &mut WorkBudget) -> (Cost, Demand) {
        engine.revert(self.mark);
        let leftover = self.go(engine, way, budget);
        for host in engine.open_hosts_since(self.mark) {
            improve::tighten(engine, host);
        }
        (cost(engine, &leftover), leftover)
    }

    fn go(&mut self, engine: &mut Engine<'_, '_>, way: Way, budget: &mut WorkBudget) -> Demand {
        let first = self.mark.hosts();
        let mut leftover = self.wanted.clone();
        match way {
            Way::AsPlanned => {
                let plans = &mut self.plans;
                self.markets.fill_as_planned(engine, first, self.order, &mut leftover, plans, budget);
                let is_planned = self.plans.are_complete();
                self.is_met_as_planned = is_planned && leftover.is_empty();
                if self.exact.is_none() && !is_planned {
                    self.exact = Some(Markets::priced(engine.problem, self.level, self.wanted, EXACT_PRICE_WORK));
                }
            }
            Way::AsAllotted => self.markets(way).fill_as_allotted(engine, first, &mut leftover, budget),
            Way::InRounds => self.markets(way).fill_in_rounds(engine, first, self.level, &mut leftover, budget),
            Way::ByWorth => {
                let markets = self.markets(way);
                budget.half(|budget| markets.fill(engine, first, &mut leftover, HourlyPrice::MAX, budget));
            }
            Way::AsReference => leftover = as_reference(engine, self.order, self.level, self.wanted),
        }
        leftover
    }

    /// What a way goes by: the program of whole nodes improves the prices that it begins with, and nothing else does.
    fn markets(&self, way: Way) -> &Markets {
        match way {
            Way::AsPlanned => &self.markets,
            _ => self.exact.as_ref().unwrap_or(&self.markets),
        }
    }

    /// Whether a way may be better than those before it: the program of whole nodes knows all that the others know.
    fn is_worth_trying(&self, way: Way) -> bool {
        match way {
            Way::AsReference => true,
            // One pod goes on the cheapest node that holds it, and no plan knows better.
            Way::AsPlanned => self.wanted.values().sum::<usize>() > 1,
            Way::InRounds | Way::AsAllotted => self.exact.is_some(),
            Way::ByWorth => !self.is_met_as_planned,
        }
    }
}

/// Buys nodes in each way that is worth trying, and improves the cheapest. What is left found no place.
fn buy(
    engine: &mut Engine<'_, '_>,
    order: &[ClassIndex],
    level: usize,
    wanted: &Demand,
    budget: &mut WorkBudget,
) -> Demand {
    // Where nothing opens a node, such as in a pool at its limit, there is nothing to choose: pods may have a hundred levels of preferences,
    // and each would be a program of its own.
    if !wanted.keys().any(|class| engine.opens(*class, engine.problem.classes[*class].variants[level])) {
        return as_reference(engine, order, level, wanted);
    }
    let mark = engine.mark();
    let markets = Markets::new(engine.problem, level, wanted);
    // Pools of every weight, and pods of every priority, have all of it.
    let plans = Plans::with(engine.problem.search_work);
    let mut procurement =
        Procurement { markets, exact: None, plans, is_met_as_planned: false, order, level, wanted, mark };
    let (mut best, mut last) = (Way::AsReference, Way::AsReference);
    let (mut least, mut leftover) = procurement.attempt(engine, best, budget);
    for way in [Way::AsPlanned, Way::InRounds, Way::AsAllotted, Way::ByWorth] {
        if !procurement.is_worth_trying(way) {
            continue;
        }
        let (cost, left_out) = procurement.attempt(engine, way, budget);
        (last, leftover) = (way, left_out);
        // Of equals the first, but for nodes that are only as good as the reference's.
        if cost < least || cost == least && best == Way::AsReference {
            (least, best) = (cost, way);
        }
    }
    if last != best {
        (_, leftover) = procurement.attempt(engine, best, budget);
    }
    improve::improve(engine, mark, level, procurement.markets(best), budget);
    leftover
}

/// The reference's packing of pods at one level of preferences.
fn as_reference(engine: &mut Engine<'_, '_>, order: &[ClassIndex], level: usize, wanted: &Demand) -> Demand {
    let leftover = karpenter::pack_at(engine, order, wanted, Some(level));
    for host in engine.open_hosts() {
        improve::tighten(engine, host);
    }
    leftover
}
