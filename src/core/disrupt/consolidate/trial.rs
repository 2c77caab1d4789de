//! Doing without some nodes, in the engine: their pods on other nodes, and on new ones if need be.

use fixedbitset::FixedBitSet;

use crate::disrupt::candidate::Candidate;
use crate::disrupt::rehome::{self, Rooms};
use crate::model::HourlyPrice;
use crate::provision::cheapest::greedy::Markets;
use crate::provision::cheapest::improve::Pools;
use crate::provision::cheapest::planned::{MULTIPLICATIONS_PER_LOOK, Plans};
use crate::provision::cheapest::{WorkBudget, improve};
use crate::scheduler::Demand;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Mark};

use super::Source;

/// What may be bought for pods that no other node has room for.
pub(super) enum Buying<'b> {
    Nothing,
    /// One node of these pools that costs less, with what it costs beside its instance.
    OneNode {
        pools: Pools,
        most: HourlyPrice,
    },
    /// As many as it takes, and tried again with this much work.
    Nodes {
        markets: &'b Markets,
        budget: &'b mut WorkBudget,
        /// Whether whole fleets are worth their work, which is much.
        as_fleet: bool,
    },
}

/// Nodes that were done without. The engine holds the outcome.
#[derive(Debug)]
pub(super) struct Trial {
    pub mark: Mark,
    /// What the instances of the nodes cost together.
    pub before: HourlyPrice,
    /// What the instances of the new nodes cost together.
    pub bought: HourlyPrice,
    /// What the nodes cost beside their instances, less what the new ones do.
    pub saved_beside: HourlyPrice,
    pub nodes_bought: usize,
    /// What concentration counts more afterwards; nothing where it counts less, since no pod is moved for its sake.
    pub concentration: HourlyPrice,
}

/// Why nodes can not be done without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// So many pods fit on no other node, and nothing may be bought for them; of those some fit without what they prefer.
    Pods { all: usize, preferring: usize },
    /// They fit on nodes that take none yet because pods came or went there a moment ago.
    RoomSoon,
}

/// Does without the sources; when some pods find no place, or will find one without a new node, the engine is as it was.
pub(super) fn without(
    engine: &mut Engine<'_, '_>,
    sources: &[Source<'_>],
    rooms: &mut Rooms,
    buying: Buying<'_>,
) -> Result<Trial, NoRoom> {
    let mark = engine.mark();
    let concentration_before = engine.price_of_concentration();
    let candidates: Vec<&Candidate> = sources.iter().map(|source| source.candidate).collect();
    let mut left = rehome::take_off(engine, &candidates);
    rehome::place_on(engine, &mut left, rooms);
    let without_room = left.values().sum();
    if without_room > 0 {
        match buying {
            Buying::Nothing => {}
            _ if fit_soon(engine, &left, rooms) => {
                engine.revert(mark);
                return Err(NoRoom::RoomSoon);
            }
            Buying::OneNode { pools, most } => {
                if rehome::one_cheaper_node(engine, &left, pools, most).is_some() {
                    left.clear();
                }
            }
            Buying::Nodes { markets, budget, as_fleet } => {
                left = buy(engine, &left, markets, budget, as_fleet);
                if !left.is_empty() {
                    rooms.gives_up = true;
                    rehome::place_on(engine, &mut left, rooms);
                    rooms.gives_up = false;
                }
            }
        }
    }
    if !left.is_empty() {
        let preferring =
            fitting_without_preferences(engine, left.iter().map(|(class, count)| (*class, *count)), rooms, None);
        engine.revert(mark);
        return Err(NoRoom::Pods { all: without_room, preferring });
    }
    let nodes_bought = engine.open_hosts_since(mark).filter(|host| !engine.is_closed(*host)).count();
    let bought = improve::price_since(engine, mark);
    let beside_new = improve::cost_since(engine, mark) - bought;
    let beside: HourlyPrice = sources.iter().map(|source| source.candidate.cost_beside).sum();
    Ok(Trial {
        mark,
        before: sources.iter().map(|source| source.price).sum(),
        bought,
        saved_beside: beside - beside_new,
        nodes_bought,
        concentration: (engine.price_of_concentration() - concentration_before).max(HourlyPrice::ZERO),
    })
}

/// How many pods are of classes that other nodes, `but` one, would take without some of what they prefer. One look for each level of preferences.
pub(super) fn fitting_without_preferences(
    engine: &Engine<'_, '_>,
    pods: impl Iterator<Item = (ClassIndex, usize)>,
    rooms: &Rooms,
    but: Option<HostIndex>,
) -> usize {
    let classes = &engine.problem.classes;
    let mut all = None;
    let others = || {
        let mut others = rooms.all();
        but.map(usize::from).filter(|but| *but < others.len()).into_iter().for_each(|but| others.remove(but));
        others
    };
    let mut fits = |class: ClassIndex| {
        let without = classes[class].variants.get(classes[class].alternatives..).unwrap_or_default();
        let all = (!without.is_empty()).then(|| all.get_or_insert_with(others));
        let any_of = |all: &mut FixedBitSet| {
            without
                .iter()
                .any(|variant| engine.find_existing(class, *variant, HostIndex::default(), Some(&*all)).is_some())
        };
        all.is_some_and(any_of)
    };
    pods.filter(|(class, _)| fits(*class)).map(|(_, count)| count).sum()
}

/// Whether nodes that changed recently have room for all of these pods. What is bought meanwhile would be given back when they are not,
/// and the pods moved once more. The engine is as it was.
fn fit_soon(engine: &mut Engine<'_, '_>, left: &Demand, rooms: &Rooms) -> bool {
    if rooms.recently_changed.is_clear() {
        return false;
    }
    let mark = engine.mark();
    let mut left = left.clone();
    rehome::place_on(engine, &mut left, &mut Rooms { filling: rooms.recently_changed.clone(), ..Rooms::default() });
    engine.revert(mark);
    left.is_empty()
}

/// With less work for each pod than this the prices of all pods together have to do for each set.
const OWN_PRICES_LOOKS_PER_POD: u64 = 300;

/// How to buy.
#[derive(Clone, Copy)]
enum How<'m> {
    ByWorth(&'m Markets),
    AsAllotted(&'m Markets),
    AsPlanned(&'m Markets),
}

impl<'m> How<'m> {
    fn markets(self) -> &'m Markets {
        let (Self::ByWorth(markets) | Self::AsAllotted(markets) | Self::AsPlanned(markets)) = self;
        markets
    }
}

/// Buys in several ways, improves the cheapest, and says what is left: by what pods are worth in the whole cluster, by what they
/// are worth among themselves, and as the linear program of these pods alone would buy, in parts of nodes and in whole ones.
fn buy(
    engine: &mut Engine<'_, '_>,
    wanted: &Demand,
    markets: &Markets,
    budget: &mut WorkBudget,
    as_fleet: bool,
) -> Demand {
    let problem = engine.problem;
    let since = engine.mark();
    let least = OWN_PRICES_LOOKS_PER_POD.saturating_mul(wanted.values().sum::<usize>() as u64);
    let own = (budget.looks >= least).then(|| {
        let work = budget.looks / 4;
        budget.spend(work);
        Markets::priced(problem, 0, wanted, work.saturating_mul(MULTIPLICATIONS_PER_LOOK))
    });
    let mut hows = vec![How::ByWorth(markets)];
    hows.extend(own.iter().flat_map(|own| [How::ByWorth(own), How::AsAllotted(own)]));
    hows.extend(own.iter().filter(|_| as_fleet).map(How::AsPlanned));
    let order = rehome::largest_first(problem, wanted);
    let mut plans = Plans::with(budget.looks / 2);
    let mut go = |engine: &mut Engine<'_, '_>, how: How<'_>, budget: &mut WorkBudget| {
        let mut left = wanted.clone();
        match how {
            How::ByWorth(markets) => markets.fill(engine, since.hosts(), &mut left, HourlyPrice::MAX, budget),
            How::AsAllotted(markets) => markets.fill_as_allotted(engine, since.hosts(), &mut left, budget),
            How::AsPlanned(markets) => {
                markets.fill_as_planned(engine, since.hosts(), &order, &mut left, &mut plans, budget);
            }
        }
        for host in engine.open_hosts_since(since) {
            improve::tighten(engine, host);
        }
        left
    };
    let mut best: Option<(_, usize)> = None;
    let mut left = Demand::new();
    for (position, how) in hows.iter().enumerate() {
        engine.revert(since);
        left = go(engine, *how, budget);
        let nodes = engine.open_hosts_since(since).filter(|host| !engine.is_closed(*host)).count();
        let price = improve::cost_since(engine, since) + engine.price_of_concentration();
        let cost = (left.values().sum::<usize>(), price, nodes);
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, position));
        }
    }
    let position = best.map_or(0, |(_, position)| position);
    let how = hows[position];
    // The last is still in the engine.
    if position + 1 < hows.len() {
        engine.revert(since);
        left = go(engine, how, budget);
    }
    improve::improve(engine, since, 0, how.markets(), budget);
    left
}
