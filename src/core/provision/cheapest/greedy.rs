//! Buys, again and again, the node on which the waiting pods are worth most for its price.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

use crate::core::model::HourlyPrice;
use crate::core::provision::karpenter::Leftover;
use crate::core::scheduler::class::VariantIndex;
use crate::core::scheduler::offerings::Slots;
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::vectors;
use crate::core::scheduler::{ClassIndex, Engine, HostIndex, Problem};

use super::Budget;
use super::kinds::{Kind, kinds};
use super::market::{Offer, PRICE_WORK, Purpose, number, offers, prices};
use super::shopping::Shopping;
use super::weights::{share, weight};

/// How many pods of each kind go on one node, by position of the kind.
pub type Pattern = Vec<(usize, usize)>;

/// What each pool of one weight sells, and what the pods are worth there.
pub struct Market {
    /// Largest request first.
    pub kinds: Vec<Kind>,
    pub kind_of: BTreeMap<ClassIndex, usize>,
    pub variants: BTreeMap<ClassIndex, VariantIndex>,
    /// By template: kinds that its requirements allow, largest request first.
    kinds_of_template: Vec<Vec<usize>>,
    pub offers: Vec<Offer>,
    /// By kind: dollars per hour that one pod is worth.
    worth: Vec<f64>,
    /// By offer: kinds by worth for their largest share of it, best first.
    by_worth: Vec<OnceCell<Vec<usize>>>,
}

/// The markets of all weights, highest first: pools of a higher weight are used up before others are asked.
pub struct Markets(Vec<Market>);

impl Markets {
    /// Prices the demand at one level of preferences. Later fillings may be for any part of it.
    pub fn new(problem: &Problem<'_>, level: usize, demand: &Leftover) -> Self {
        let mut tiers: Vec<i32> = problem.templates.iter().map(|template| template.weight).collect();
        tiers.sort_unstable_by(|one, two| two.cmp(one));
        tiers.dedup();
        Self(tiers.into_iter().map(|weight| Market::new(problem, level, demand, weight)).collect())
    }

    /// Opens nodes, each for less than `most`, until the demand is met or nothing more can be bought. Of the nodes that are
    /// open already, those from `first` on are used too.
    pub fn fill(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Leftover,
        most: HourlyPrice,
        budget: &mut Budget,
    ) {
        for market in &self.0 {
            market.buy_until_met(engine, first, demand, most, budget);
        }
    }
}

/// What an offer is good for, at some point of the search.
struct Quote {
    /// Worth per dollar, rounded: closer figures differ by the rounding of the division.
    ratio: f64,
    worth: f64,
    offer: usize,
    /// How much had been bought when this was worked out. Later it is a bound: what waits only gets less.
    bought: usize,
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
    fn new(problem: &Problem<'_>, level: usize, demand: &Leftover, weight_of_pools: i32) -> Self {
        let variants: BTreeMap<ClassIndex, VariantIndex> =
            demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.get(level)?))).collect();
        let only = variants.iter().map(|(class, variant)| (*class, vec![*variant])).collect();
        let (mut kinds, places) = kinds(problem, demand, &only);
        let mut alone: Vec<f64> = Vec::new();
        // What nothing can host is not shopped for.
        kinds.retain(|kind| weight(problem, kind).inspect(|weight| alone.push(*weight)).is_some());
        let market = |purpose| offers(problem, &kinds, Some(weight_of_pools), problem.per_node, purpose);
        let worth = prices(&kinds, places, &market(Purpose::Pricing), &alone, PRICE_WORK).per_pod;
        let offers = market(Purpose::Buying);
        let is_welcome = |template: TemplateIndex, kind: &Kind| {
            kind.variants.iter().any(|variant| problem.purchasable(*variant, template).is_ok())
        };
        let of_template = |template| (0..kinds.len()).filter(|kind| is_welcome(template, &kinds[*kind])).collect();
        let kinds_of_template = (0..problem.templates.len()).map(of_template).collect();
        let numbered = kinds.iter().enumerate();
        let kind_of = numbered.flat_map(|(position, kind)| kind.classes.iter().map(move |class| (*class, position)));
        let kind_of = kind_of.collect();
        let by_worth = offers.iter().map(|_| OnceCell::new()).collect();
        Self { kinds, kind_of, variants, kinds_of_template, offers, worth, by_worth }
    }

    /// O(nodes bought x (offers quoted again x kinds that wait + pods on one)): after a purchase only those offers are
    /// quoted again that could still be the best.
    fn buy_until_met(
        &self,
        engine: &mut Engine<'_, '_>,
        first: HostIndex,
        demand: &mut Leftover,
        most: HourlyPrice,
        budget: &mut Budget,
    ) {
        let mut shopping = Shopping::new(self, demand);
        if shopping.is_done() {
            return;
        }
        let affordable = (0..self.offers.len()).filter(|offer| self.offers[*offer].price < most);
        let mut quotes: BinaryHeap<Quote> =
            affordable.filter_map(|offer| self.quote(offer, 0, &shopping, budget)).collect();
        let mut bought = 0;
        while let Some(quote) = quotes.pop() {
            if quote.bought < bought {
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
                quotes.push(Quote { pattern: Pattern::new(), bought: bought_before, ..quote });
            }
            if shopping.is_done() {
                break;
            }
        }
        shopping.place_all_waiting(engine, first);
        shopping.finish();
    }

    /// What an offer is good for now; `None` when nothing that waits fits it.
    fn quote(&self, offer: usize, bought: usize, shopping: &Shopping<'_, '_>, budget: &mut Budget) -> Option<Quote> {
        let allowed = &self.kinds_of_template[self.offers[offer].template];
        // Sorting what waits costs less than passing over what does not, when it is little of much.
        let few_wait = shopping.kinds_waiting().len() * 8 < allowed.len();
        let by_size = if few_wait { shopping.kinds_waiting() } else { allowed };
        let by_size = self.pattern(offer, by_size, shopping, budget);
        let (pattern, worth) = if few_wait {
            self.pattern(offer, &self.sorted_by_worth(offer, shopping.kinds_waiting()), shopping, budget)
        } else {
            let order = self.by_worth[offer].get_or_init(|| self.sorted_by_worth(offer, allowed));
            self.pattern(offer, order, shopping, budget)
        };
        let (pattern, worth) = if by_size.1 > worth { by_size } else { (pattern, worth) };
        if pattern.is_empty() {
            return None;
        }
        let price = self.offers[offer].price.dollars().max(f64::MIN_POSITIVE);
        let ratio = (worth / price * 1e9).round() / 1e9;
        Some(Quote { ratio, worth, offer, bought, pattern })
    }

    /// Fills one node with kinds in the given order; its worth in dollars per hour.
    fn pattern(
        &self,
        offer: usize,
        order: &[usize],
        shopping: &Shopping<'_, '_>,
        budget: &mut Budget,
    ) -> (Pattern, f64) {
        let offer = &self.offers[offer];
        let mut room = offer.room.clone();
        let mut slots = Slots::MAX;
        let mut pattern = Pattern::new();
        let mut worth = 0.0;
        for position in order.iter().copied() {
            let kind = &self.kinds[position];
            let left = shopping.waiting(position);
            let common = slots & offer.allowed(kind);
            if left == 0 || common == 0 {
                continue;
            }
            let count = vectors::copies(&kind.request, &room, left.min(kind.most_per_node));
            if count > 0 {
                slots = common;
                vectors::add(&mut room, &kind.request, -i64::try_from(count).unwrap_or(i64::MAX));
                worth += self.worth[position] * number(count);
                pattern.push((position, count));
            }
        }
        budget.spend(order.len() as u64);
        (pattern, worth)
    }

    /// Kinds by what they are worth for the largest share of the offer that one pod takes.
    fn sorted_by_worth(&self, offer: usize, kinds: &[usize]) -> Vec<usize> {
        let mut kinds = kinds.to_vec();
        let room = &self.offers[offer].room;
        let density = |kind: &usize| {
            let density = self.worth[*kind] / share(&self.kinds[*kind].request, room).max(f64::MIN_POSITIVE);
            (std::cmp::Reverse(density.to_bits()), *kind)
        };
        kinds.sort_by_cached_key(density);
        kinds
    }
}

/// Puts one more pod on an open node, if it takes it.
pub fn add(engine: &mut Engine<'_, '_>, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> bool {
    match engine.narrowed(class, variant, host) {
        Ok(narrowed) => {
            engine.place_on_open(class, host, narrowed);
            true
        }
        Err(_) => false,
    }
}
