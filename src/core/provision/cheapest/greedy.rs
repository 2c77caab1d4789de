//! Buys, again and again, the node on which the waiting pods are worth most for its price.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::provision::choice::{capacity_of, choose};
use crate::core::provision::karpenter::{Leftover, place_on_open};
use crate::core::scheduler::class::VariantIndex;
use crate::core::scheduler::offerings::Slots;
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Engine, HostIndex, Problem};

use super::Budget;
use super::market::{Offer, PRICE_WORK, most_per_node, number, offers, prices};
use super::weights::{share, weights};

/// How many pods of each class go on one node.
type Pattern = Vec<(ClassIndex, usize)>;

/// What each pool of one weight sells, and what the pods are worth there.
struct Market {
    variants: BTreeMap<ClassIndex, VariantIndex>,
    weights: BTreeMap<ClassIndex, f64>,
    /// Most pods of a class that one node may hold by its own constraints.
    most_per_node: BTreeMap<ClassIndex, usize>,
    /// By offer: classes by worth for their largest share of it, best first.
    by_worth: Vec<Vec<ClassIndex>>,
    /// Classes by size, largest first.
    by_size: Vec<ClassIndex>,
    classes: Vec<ClassIndex>,
    requests: BTreeMap<ClassIndex, Vector>,
    offers: Vec<Offer>,
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

    /// Opens nodes until the demand is met or nothing more can be bought. Of the nodes that are open already, those from
    /// `first` on are used too.
    pub fn fill(&self, engine: &mut Engine<'_, '_>, first: HostIndex, demand: &mut Leftover, budget: &mut Budget) {
        for market in &self.0 {
            market.buy_until_met(engine, first, demand, budget);
        }
    }
}

impl Market {
    fn new(problem: &Problem<'_>, level: usize, demand: &Leftover, weight: i32) -> Self {
        let variants: BTreeMap<ClassIndex, VariantIndex> =
            demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.get(level)?))).collect();
        let alone = weights(problem, &variants);
        let classes: Vec<ClassIndex> = alone.keys().copied().collect();
        let most_per_node: BTreeMap<ClassIndex, usize> =
            classes.iter().map(|class| (*class, most_per_node(problem, *class, variants[class]))).collect();
        let only: BTreeMap<ClassIndex, &[VariantIndex]> =
            variants.iter().map(|(class, variant)| (*class, std::slice::from_ref(variant))).collect();
        let offers = offers(problem, &classes, &only, Some(weight));
        let counts: Vec<usize> = classes.iter().map(|class| demand[class]).collect();
        let start: Vec<f64> = alone.values().copied().collect();
        let priced = prices(problem, &classes, &counts, &offers, &most_per_node, &start, PRICE_WORK);
        let weights: BTreeMap<ClassIndex, f64> = classes.iter().copied().zip(priced.per_pod).collect();
        let requests: BTreeMap<ClassIndex, Vector> =
            classes.iter().map(|class| (*class, problem.classes[*class].request.clone())).collect();
        let mut by_size = classes.clone();
        by_size.sort_by_key(|class| {
            let request = &requests[class];
            (std::cmp::Reverse((request[vectors::CPU_DIMENSION], request[vectors::MEMORY_DIMENSION])), *class)
        });
        let by_worth = offers.iter().map(|offer| by_worth(offer, &classes, &weights, &requests)).collect();
        Self { variants, weights, most_per_node, by_worth, by_size, classes, requests, offers }
    }

    fn buy_until_met(&self, engine: &mut Engine<'_, '_>, first: HostIndex, demand: &mut Leftover, budget: &mut Budget) {
        let mut useless: BTreeSet<(TemplateIndex, usize, Slots)> = BTreeSet::new();
        while demand.values().any(|count| *count > 0) {
            let Some((offer, pattern)) = self.best(demand, &useless, budget) else { break };
            let mut bought = 0;
            // The same pattern again, as long as its classes last: nothing that was weighed has changed.
            while let Some(host) = self.realize(engine, offer, &pattern, demand) {
                bought += 1;
                self.top_up(engine, host, demand);
                let lasts = pattern.iter().all(|(class, count)| demand.get(class).is_some_and(|left| left >= count));
                if !lasts {
                    break;
                }
            }
            if bought == 0 {
                useless.insert((offer.template, offer.instance_type, offer.slots));
            }
            self.spread_over_open(engine, first, demand);
            demand.retain(|_, count| *count > 0);
        }
        demand.retain(|_, count| *count > 0);
    }

    /// The offer with the most worth per dollar, and what to put on it. Of equals the one worth more, then the first.
    fn best(
        &self,
        demand: &Leftover,
        useless: &BTreeSet<(TemplateIndex, usize, Slots)>,
        budget: &mut Budget,
    ) -> Option<(&Offer, Pattern)> {
        let mut best: Option<(f64, f64, &Offer, Pattern)> = None;
        for (offer, by_worth) in self.offers.iter().zip(&self.by_worth) {
            if useless.contains(&(offer.template, offer.instance_type, offer.slots)) {
                continue;
            }
            for order in [by_worth, &self.by_size] {
                budget.patterns = budget.patterns.saturating_sub(1);
                let (pattern, worth) = self.pattern(offer, order, demand);
                if pattern.is_empty() {
                    continue;
                }
                let ratio = worth / offer.price.dollars().max(f64::MIN_POSITIVE);
                let better = best.as_ref().is_none_or(|(best_ratio, best_worth, ..)| {
                    ratio > best_ratio * (1.0 + RATIO_TOLERANCE)
                        || (ratio >= best_ratio * (1.0 - RATIO_TOLERANCE) && worth > *best_worth)
                });
                if better {
                    best = Some((ratio, worth, offer, pattern));
                }
            }
        }
        best.map(|(_, _, offer, pattern)| (offer, pattern))
    }

    /// Fills one node in the given order of classes; its worth in dollars per hour.
    fn pattern(&self, offer: &Offer, order: &[ClassIndex], demand: &Leftover) -> (Pattern, f64) {
        let mut room = offer.room.clone();
        let mut slots = Slots::MAX;
        let mut pattern = Pattern::new();
        let mut worth = 0.0;
        for class in order {
            let Some(left) = demand.get(class).filter(|left| **left > 0) else { continue };
            let Ok(position) = self.classes.binary_search(class) else { continue };
            let common = slots & offer.allowed[position];
            if common == 0 {
                continue;
            }
            let request = self.request(*class);
            let count = vectors::copies(request, &room, (*left).min(self.most_per_node[class]));
            if count > 0 {
                slots = common;
                vectors::add(&mut room, request, -i64::try_from(count).unwrap_or(i64::MAX));
                worth += self.weights[class] * number(count);
                pattern.push((*class, count));
            }
        }
        (pattern, worth)
    }

    /// Opens a node of the offer and puts the pattern on it, as far as topology lets it.
    fn realize(
        &self,
        engine: &mut Engine<'_, '_>,
        offer: &Offer,
        pattern: &Pattern,
        demand: &mut Leftover,
    ) -> Option<HostIndex> {
        let wanted = engine.problem.templates[offer.template].set.only(offer.instance_type, offer.slots);
        let mut host = None;
        for (class, count) in pattern {
            let variant = self.variants[class];
            for _ in 0..*count {
                let placed = match host {
                    None => {
                        let Ok(open) = engine.opened(*class, variant, offer.template, Some(&wanted)) else { break };
                        let Some(choice) = choose(engine, &open) else { break };
                        let capacity = capacity_of(engine, &open, &choice);
                        host = Some(engine.open(*class, open, capacity));
                        true
                    }
                    Some(host) => add(engine, *class, variant, host),
                };
                if !placed {
                    break;
                }
                take_one(demand, *class);
            }
        }
        host
    }

    /// Puts more of whatever waits on a node that was just opened.
    fn top_up(&self, engine: &mut Engine<'_, '_>, host: HostIndex, demand: &mut Leftover) {
        for class in &self.by_size {
            while demand.get(class).is_some_and(|left| *left > 0) && add(engine, *class, self.variants[class], host) {
                take_one(demand, *class);
            }
        }
    }

    /// Constraints that held pods back may allow them on nodes opened before, now that there is another.
    fn spread_over_open(&self, engine: &mut Engine<'_, '_>, first: HostIndex, demand: &mut Leftover) {
        let problem = engine.problem;
        let constrained = |class: &&ClassIndex| !problem.variants[self.variants[*class]].constraints.is_empty();
        for class in self.classes.iter().filter(constrained) {
            while demand.get(class).is_some_and(|left| *left > 0)
                && place_on_open(engine, first, *class, self.variants[class]).is_some()
            {
                take_one(demand, *class);
            }
        }
    }

    fn request(&self, class: ClassIndex) -> &[i64] {
        &self.requests[&class]
    }
}

/// Classes by what they are worth for the largest share of the offer that one pod takes.
fn by_worth(
    offer: &Offer,
    classes: &[ClassIndex],
    weights: &BTreeMap<ClassIndex, f64>,
    requests: &BTreeMap<ClassIndex, Vector>,
) -> Vec<ClassIndex> {
    let density = |class: &ClassIndex| weights[class] / share(&requests[class], &offer.room).max(f64::MIN_POSITIVE);
    let mut order: Vec<(f64, ClassIndex)> = classes.iter().map(|class| (density(class), *class)).collect();
    order.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
    order.into_iter().map(|(_, class)| class).collect()
}

/// Ratios this close are equal: they differ by the rounding of the division.
const RATIO_TOLERANCE: f64 = 1e-9;

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

fn take_one(demand: &mut Leftover, class: ClassIndex) {
    if let Some(left) = demand.get_mut(&class) {
        *left = left.saturating_sub(1);
    }
}
