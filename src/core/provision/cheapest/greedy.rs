//! Buys, again and again, the node on which the waiting pods are worth most for its price.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::model::HourlyPrice;
use crate::programs::filling::{WHOLE_PIECES_MAX, whole_pieces};
use crate::programs::{as_number, number};
use crate::scheduler::Demand;
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};

use super::WorkBudget;
use super::market::{EXACT_PRICE_WORK, Market, Offer, PRICE_WORK, Pattern};
use super::node_filling::NodeFilling;
use super::planned::{Planned, Plans};
use super::shopping::Shopping;
use super::weights::share;
use super::worth_bound::{Waiting, WorthBound};

/// The markets of all weights, highest first: pools of a higher weight are used up before others are asked.
pub struct Markets(pub Vec<Market>);

impl Markets {
    /// Pools of one weight are the rule; where there are several, the market that sells for most kinds speaks for all.
    pub fn widest(&self) -> Option<&Market> {
        self.0.iter().max_by_key(|market| (market.kinds.len(), std::cmp::Reverse(market.offers.len())))
    }

    /// Prices the demand at one level of preferences. Later fillings may be for any part of it.
    pub fn new(problem: &Problem<'_>, level: usize, demand: &Demand) -> Self {
        Self::priced(problem, level, demand, PRICE_WORK)
    }

    /// The same, with this much work for the prices.
    pub fn priced(problem: &Problem<'_>, level: usize, demand: &Demand, work: u64) -> Self {
        let mut tiers: Vec<i32> = problem.templates.iter().map(|template| template.weight).collect();
        tiers.sort_unstable_by(|one, two| two.cmp(one));
        tiers.dedup();
        Self(tiers.into_iter().map(|weight| Market::new(problem, level, demand, weight, work)).collect())
    }

    /// Opens whole fleets chosen on paper, pools of the highest weight first; what is left is bought as by [`Self::fill`]. `plans` has
    /// one for each weight, or gets them.
    pub fn fill_as_planned(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        order: &[ClassIndex],
        demand: &mut Demand,
        plans: &mut Plans,
        budget: &mut WorkBudget,
    ) {
        for (position, market) in self.0.iter().enumerate() {
            if position == plans.of_markets.len() {
                plans.of_markets.push(Planned::new(engine, market, order, demand, plans.looks, budget));
            }
            if let Some(planned) = &plans.of_markets[position] {
                planned.carry_out(engine, market, first, demand);
            }
            market.buy_until_met(engine, first, demand, HourlyPrice::MAX, budget);
        }
    }

    /// Buys whole nodes for what the linear program allots them, then as [`Self::fill`] for the rest.
    pub fn fill_as_allotted(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Demand,
        budget: &mut WorkBudget,
    ) {
        for market in &self.0 {
            market.buy_as_allotted(engine, first, demand, ALLOTTED_WORTH_MIN, budget);
            market.buy_until_met(engine, first, demand, HourlyPrice::MAX, budget);
        }
    }

    /// Buys the nodes that are filled best with what they are allotted, then solves the linear program again for what is left, and
    /// so on with less well filled ones; then as [`Self::fill`] for the rest. For pools of one weight.
    pub fn fill_in_rounds(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        level: usize,
        demand: &mut Demand,
        budget: &mut WorkBudget,
    ) {
        let [market] = self.0.as_slice() else { return self.fill_as_allotted(engine, first, demand, budget) };
        let mut again: Option<Self> = None;
        for worth_least in ROUNDS_WORTH_MIN {
            let market = again.as_ref().and_then(|again| again.0.first()).unwrap_or(market);
            let before: usize = demand.values().sum();
            market.buy_as_allotted(engine, first, demand, worth_least, budget);
            let left: usize = demand.values().sum();
            if left == 0 {
                return;
            }
            if left < before {
                again = Some(Self::priced(engine.problem, level, demand, EXACT_PRICE_WORK / ROUNDS_WORK_PART));
            }
        }
        again.as_ref().unwrap_or(self).fill(engine, first, demand, HourlyPrice::MAX, budget);
    }

    /// Opens nodes, each for less than `most`, until the demand is met or nothing more can be bought. Of the nodes that are
    /// open already, those from `first` on are used too.
    pub fn fill(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Demand,
        most: HourlyPrice,
        budget: &mut WorkBudget,
    ) {
        for market in &self.0 {
            market.buy_until_met(engine, first, demand, most, budget);
        }
    }
}

/// An allotment is left when what remains of it is worth less than this part of what a node costs.
const ALLOTTED_WORTH_MIN: f64 = 0.9;

/// The same, round by round: what is bought first should be filled almost without loss.
const ROUNDS_WORTH_MIN: [f64; 5] = [0.98, 0.97, 0.96, 0.94, 0.9];

/// The part of the work for the prices of all that each round may spend on the prices of the rest.
const ROUNDS_WORK_PART: u64 = 8;

/// Room is weighed anew after a part of each kind.
const STEPS_PER_KIND: usize = 4;

/// Filling a node with few pods by search takes about as long as so many looks, and so many of the search as one.
const SEARCHED_LOOKS: u64 = 200;
const LOOKS_OF_A_SEARCH: u64 = 8;

/// With more kinds than this, nodes are filled in fixed orders only.
const BALANCED_KINDS_MAX: usize = 128;

/// Worth per dollar is rounded to so many parts of one: closer figures differ by the rounding of the division.
const RATIO_PARTS: f64 = 1e9;

/// What an offer is good for, at some point of the search.
struct Quote {
    /// Worth per dollar, rounded.
    ratio: f64,
    worth: f64,
    offer: usize,
    /// How much had been bought when this was worked out. Later it is a bound: what waits only gets less. `None` where no node was filled.
    bought: Option<usize>,
    pattern: Pattern,
}

impl Quote {
    /// The most worth per dollar is the largest; of equals the one worth more, then the first offer.
    fn order(&self) -> (u64, u64, std::cmp::Reverse<usize>) {
        // Positive numbers have the order of their bits.
        (self.ratio.to_bits(), self.worth.to_bits(), std::cmp::Reverse(self.offer))
    }
}

impl PartialEq for Quote {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Quote {}

impl PartialOrd for Quote {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quote {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl Market {
    /// The parts of the demand that fill whole nodes of the offers that they are allotted to, each with this part of its price;
    /// then the room that is left on these nodes. O(nodes bought x kinds).
    fn buy_as_allotted(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Demand,
        worth_least: f64,
        budget: &mut WorkBudget,
    ) {
        // The program does not know that of some nodes there are only so many; those come first, by worth.
        if self.offers.iter().any(|offer| offer.reserved) {
            return;
        }
        let mut shopping = Shopping::new(self, demand);
        for allotment in &self.allotments {
            let same = |offer: &Offer| {
                offer.template == allotment.template
                    && offer.instance_type == allotment.instance_type
                    && offer.slots & allotment.slots != 0
            };
            let Some(offer) = self.offers.iter().position(same) else { continue };
            let mut allotted: BTreeMap<usize, usize> = allotment.kinds.iter().copied().collect();
            loop {
                allotted.iter_mut().for_each(|(kind, left)| *left = (*left).min(shopping.waiting(*kind)));
                let (pattern, worth) = self.in_proportion(offer, &allotted, budget);
                if pattern.is_empty() || worth < worth_least * self.offers[offer].price.dollars() {
                    break;
                }
                let Some(host) = shopping.realize(engine, &self.offers[offer], &pattern) else { break };
                // Topology may have kept some of the pattern away.
                shopping.top_up(engine, host);
                for (kind, count) in pattern {
                    allotted.entry(kind).and_modify(|left| *left = left.saturating_sub(count));
                }
            }
        }
        shopping.place_all_waiting(engine, first);
        shopping.finish();
    }

    /// O(offers + nodes bought x (offers quoted x kinds that wait + pods on one)): only those offers are quoted, and after a purchase
    /// quoted again, that could still be the best.
    fn buy_until_met(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Demand,
        most: HourlyPrice,
        budget: &mut WorkBudget,
    ) {
        let mut shopping = Shopping::new(self, demand);
        if shopping.is_done() {
            return;
        }
        let mut quotes = self.bounds(most, &shopping, budget);
        let mut bought = 0;
        while let Some(quote) = quotes.pop() {
            if budget.is_spent() && budget.ends_purchases {
                return shopping.finish();
            }
            if quote.bought != Some(bought) {
                quotes.extend(self.quote(quote.offer, bought, &shopping, budget));
                continue;
            }
            let bought_before = bought;
            // The same pattern again, as long as its kinds last: nothing that was weighed has changed.
            while let Some(host) = shopping.realize(engine, &self.offers[quote.offer], &quote.pattern) {
                bought += 1;
                shopping.top_up(engine, host);
                if !quote.pattern.iter().all(|(kind, count)| shopping.waiting(*kind) >= *count) {
                    break;
                }
            }
            shopping.place_held_back(engine, first);
            if bought > bought_before {
                quotes.push(Quote { pattern: Pattern::new(), bought: Some(bought_before), ..quote });
            }
            if shopping.is_done() {
                break;
            }
        }
        shopping.place_all_waiting(engine, first);
        shopping.finish();
    }

    /// For each offer that costs less than `most` and may be for some of what waits, what it could be good for at most.
    fn bounds(&self, most: HourlyPrice, shopping: &Shopping<'_, '_>, budget: &mut WorkBudget) -> BinaryHeap<Quote> {
        let kinds = shopping.kinds_waiting();
        let wanted: BTreeSet<TemplateIndex> = self.templates_for(kinds);
        let may_sell = |offer: &Offer| offer.price < most && wanted.contains(&offer.template);
        let affordable = self.offers.iter().enumerate().filter(|(_, offer)| may_sell(offer));
        let Some((_, any)) = affordable.clone().next() else { return BinaryHeap::new() };
        let waiting = |kind: &usize| Waiting {
            count: shopping.waiting(*kind),
            worth: self.worth[*kind],
            request: &self.kinds[*kind].request,
        };
        let bound = WorthBound::new(&kinds.iter().map(waiting).collect::<Vec<_>>(), &any.room);
        budget.spend((kinds.len() + affordable.clone().count()) as u64);
        let quote = |(offer, of): (usize, &Offer)| {
            let price = of.price.dollars().max(f64::MIN_POSITIVE);
            // Of those that may be equal, the ones that are not filled yet come first.
            Quote {
                ratio: bound.of(&of.room) / price + 1.0 / RATIO_PARTS,
                worth: f64::INFINITY,
                offer,
                bought: None,
                pattern: Pattern::new(),
            }
        };
        affordable.map(quote).collect()
    }

    /// Templates that some of the kinds may use.
    fn templates_for(&self, kinds: &[usize]) -> BTreeSet<TemplateIndex> {
        let is_wanted = |of_template: &Vec<usize>| {
            // Both are in ascending order.
            kinds.iter().any(|kind| of_template.binary_search(kind).is_ok())
        };
        let templates = self.kinds_of_template.enumerated();
        templates.filter(|(_, of_template)| is_wanted(of_template)).map(|(template, _)| template).collect()
    }

    /// What an offer is good for now; `None` when nothing that waits fits it.
    fn quote(
        &self,
        offer: usize,
        bought: usize,
        shopping: &Shopping<'_, '_>,
        budget: &mut WorkBudget,
    ) -> Option<Quote> {
        let allowed = &self.kinds_of_template[self.offers[offer].template];
        let waiting = |kind: usize| shopping.waiting(kind);
        // Sorting what waits costs less than passing over what does not, when it is little of much.
        let few_wait = shopping.kinds_waiting().len() * 8 < allowed.len();
        let among = if few_wait { shopping.kinds_waiting() } else { allowed };
        let sorted;
        let by_worth = if few_wait {
            sorted = self.sorted_by_worth(&self.offers[offer].room, among);
            &sorted
        } else {
            self.by_worth[offer].get_or_init(|| self.sorted_by_worth(&self.offers[offer].room, among))
        };
        let (pattern, worth) = self.best_pattern(&self.offers[offer], by_worth, among, waiting, budget)?;
        if pattern.is_empty() {
            return None;
        }
        let price = self.offers[offer].price.dollars().max(f64::MIN_POSITIVE);
        let ratio = (worth / price * RATIO_PARTS).round() / RATIO_PARTS;
        Some(Quote { ratio, worth, offer, bought: Some(bought), pattern })
    }

    /// The best of several ways to fill one node: in the order of worth, in the order of size, and balanced.
    fn best_pattern(
        &self,
        offer: &Offer,
        by_worth: &[usize],
        by_size: &[usize],
        available: impl Fn(usize) -> usize + Copy,
        budget: &mut WorkBudget,
    ) -> Option<(Pattern, f64)> {
        let mut options =
            vec![self.pattern(offer, by_worth, available, budget), self.pattern(offer, by_size, available, budget)];
        if by_size.len() <= BALANCED_KINDS_MAX {
            options.push(self.balanced(offer, by_size, available, budget));
        }
        let is_of_few = |(pattern, _): &(Pattern, f64)| (1..=WHOLE_PIECES_MAX).contains(&pods_of(pattern));
        if !budget.is_spent() && options.iter().any(is_of_few) {
            let known = options.iter().map(|(_, worth)| *worth).fold(0.0, f64::max);
            options.push(self.searched(offer, by_size, available, known, budget));
        }
        // Of equals the first.
        options.into_iter().reduce(|one, two| if two.1 > one.1 { two } else { one })
    }

    /// Fills one node with its part of what is allotted to several, so that what is left is as mixed as before; then with
    /// whatever of it still fits.
    fn in_proportion(
        &self,
        offer: usize,
        allotted: &BTreeMap<usize, usize>,
        budget: &mut WorkBudget,
    ) -> (Pattern, f64) {
        let room = &self.offers[offer].room;
        let mut nodes: f64 = 1.0;
        for dimension in 0..room.len() {
            let requested =
                |(kind, count): (&usize, &usize)| as_number(self.kinds[*kind].request[dimension]) * number(*count);
            let requested: f64 = allotted.iter().map(requested).sum();
            if room[dimension] > 0 {
                nodes = nodes.max(requested / as_number(room[dimension]));
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a positive number of pods"
        )]
        let part = |count: usize| (number(count) / nodes).floor() as usize;
        let mut filling = NodeFilling::new(self, &self.offers[offer]);
        for (kind, count) in allotted {
            filling.take(*kind, part(*count));
        }
        for (kind, count) in allotted {
            filling.take(*kind, count.saturating_sub(filling.taken(*kind)));
        }
        budget.spend(2 * allotted.len() as u64);
        filling.finish()
    }

    /// Fills one node step by step with what is worth most for the room that is then left, so that no resource runs out long
    /// before the others. O(steps x kinds).
    fn balanced(
        &self,
        offer: &Offer,
        among: &[usize],
        available: impl Fn(usize) -> usize,
        budget: &mut WorkBudget,
    ) -> (Pattern, f64) {
        let mut filling = NodeFilling::new(self, offer);
        let mut candidates: Vec<usize> = among.iter().copied().filter(|kind| available(*kind) > 0).collect();
        while !candidates.is_empty() {
            budget.spend(candidates.len() as u64);
            candidates.retain(|kind| filling.most(*kind, available(*kind) - filling.taken(*kind)) > 0);
            let density = |kind: &usize| filling.worth_for_room(*kind);
            let Some(best) = candidates.iter().copied().max_by(|one, two| density(one).total_cmp(&density(two))) else {
                break;
            };
            let most = filling.most(best, available(best) - filling.taken(best));
            filling.take(best, most.div_ceil(STEPS_PER_KIND));
        }
        filling.finish()
    }

    /// The best of many ways to fill one node that few pods fill, if it is worth more than the one that is known; else nothing.
    /// O(kinds x log kinds).
    fn searched(
        &self,
        offer: &Offer,
        among: &[usize],
        available: impl Fn(usize) -> usize,
        known: f64,
        budget: &mut WorkBudget,
    ) -> (Pattern, f64) {
        let bin = offer.bin(&self.kinds, &self.items, among.iter().copied(), available);
        let (pods, looks) = whole_pieces(&self.items, &bin, &self.worth, known);
        budget.spend(SEARCHED_LOOKS + among.len() as u64 + looks / LOOKS_OF_A_SEARCH);
        let mut filling = NodeFilling::new(self, offer);
        for (kind, count) in pods {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number of pods on one node"
            )]
            filling.take(kind, count as usize);
        }
        filling.finish()
    }

    /// Fills one node with kinds in the given order; its worth in dollars per hour.
    fn pattern(
        &self,
        offer: &Offer,
        order: &[usize],
        available: impl Fn(usize) -> usize,
        budget: &mut WorkBudget,
    ) -> (Pattern, f64) {
        let mut filling = NodeFilling::new(self, offer);
        for kind in order.iter().copied() {
            filling.take(kind, available(kind));
        }
        budget.spend(order.len() as u64);
        filling.finish()
    }

    /// Kinds by what they are worth for the largest share of the offer that one pod takes.
    fn sorted_by_worth(&self, room: &[i64], kinds: &[usize]) -> Vec<usize> {
        let mut kinds = kinds.to_vec();
        let density = |kind: &usize| {
            let density = self.worth[*kind] / share(&self.kinds[*kind].request, room).max(f64::MIN_POSITIVE);
            (std::cmp::Reverse(density.to_bits()), *kind)
        };
        kinds.sort_by_cached_key(density);
        kinds
    }
}

fn pods_of(pattern: &Pattern) -> usize {
    pattern.iter().map(|(_, count)| count).sum()
}
