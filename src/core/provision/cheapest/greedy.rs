//! Buys, again and again, the node on which the waiting pods are worth most for its price.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::model::HourlyPrice;
use crate::core::provision::choice::{capacity_of, choose};
use crate::core::provision::karpenter::Leftover;
use crate::core::scheduler::class::VariantIndex;
use crate::core::scheduler::offerings::{OfferingSet, Slots};
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::topology::GroupKind;
use crate::core::scheduler::vectors::{self, Vector};
use crate::core::scheduler::{ClassIndex, Engine, HostIndex, Problem};

use super::Budget;
use super::weights::{as_number, weights};

/// A type of a template that could be bought.
#[derive(Debug)]
struct Offer {
    template: TemplateIndex,
    instance_type: usize,
    price: HourlyPrice,
    /// Allocatable less DaemonSets.
    room: Vector,
    /// Slots in which each class may be, by position in the list of classes; 0 where it may not.
    allowed: Vec<Slots>,
}

/// How many pods of each class go on one node.
type Pattern = Vec<(ClassIndex, usize)>;

struct Market {
    variants: BTreeMap<ClassIndex, VariantIndex>,
    weights: BTreeMap<ClassIndex, f64>,
    /// Most pods of a class that one node may hold by its own constraints.
    most_per_node: BTreeMap<ClassIndex, usize>,
    /// Classes by worth for their largest share, and by worth; the two orders in which a node is filled.
    orders: [Vec<ClassIndex>; 2],
    classes: Vec<ClassIndex>,
    requests: BTreeMap<ClassIndex, Vector>,
    offers: Vec<Offer>,
}

/// Opens nodes until the demand is met or nothing more can be bought. Pools of a higher weight are used up first.
/// Of the nodes that are open already, those from `first` on are used too.
pub fn fill(engine: &mut Engine<'_, '_>, first: HostIndex, level: usize, demand: &mut Leftover, budget: &mut Budget) {
    let mut tiers: Vec<i32> = engine.problem.templates.iter().map(|template| template.weight).collect();
    tiers.sort_unstable_by(|one, two| two.cmp(one));
    tiers.dedup();
    for weight in tiers {
        let market = Market::new(engine.problem, level, demand, weight);
        market.buy_until_met(engine, first, demand, budget);
    }
}

impl Market {
    fn new(problem: &Problem<'_>, level: usize, demand: &Leftover, weight: i32) -> Self {
        let variants: BTreeMap<ClassIndex, VariantIndex> =
            demand.keys().filter_map(|class| Some((*class, *problem.classes[*class].variants.get(level)?))).collect();
        let weights = weights(problem, &variants);
        let classes: Vec<ClassIndex> = weights.keys().copied().collect();
        let most_per_node =
            classes.iter().map(|class| (*class, most_per_node(problem, *class, variants[class]))).collect();
        let offers = offers(problem, &classes, &variants, weight);
        let requests = classes.iter().map(|class| (*class, problem.classes[*class].request.clone())).collect();
        let orders = [Vec::new(), Vec::new()];
        let mut market = Self { variants, weights, most_per_node, orders, classes, requests, offers };
        market.sort_orders(problem);
        market
    }

    /// Worth per size first puts the pods that pay best for their room; worth alone puts the large ones first.
    fn sort_orders(&mut self, problem: &Problem<'_>) {
        let largest = |class: ClassIndex| {
            let request = &problem.classes[class].request;
            std::cmp::Reverse((request[vectors::CPU_DIMENSION], request[vectors::MEMORY_DIMENSION]))
        };
        let mut by_size = self.classes.clone();
        by_size.sort_by_key(|class| (largest(*class), *class));
        let mut by_worth = self.classes.clone();
        by_worth.sort_by(|one, two| self.weights[two].total_cmp(&self.weights[one]).then(one.cmp(two)));
        self.orders = [by_worth, by_size];
    }

    fn buy_until_met(&self, engine: &mut Engine<'_, '_>, first: HostIndex, demand: &mut Leftover, budget: &mut Budget) {
        let mut useless: BTreeSet<(TemplateIndex, usize)> = BTreeSet::new();
        while demand.values().any(|count| *count > 0) {
            let Some((offer, pattern)) = self.best(demand, &useless, budget) else { break };
            let mut bought = 0;
            // The same pattern again, as long as its classes last: nothing that was weighed has changed.
            loop {
                let Some(host) = self.realize(engine, offer, &pattern, demand) else { break };
                bought += 1;
                self.top_up(engine, host, demand);
                let lasts = pattern.iter().all(|(class, count)| demand.get(class).is_some_and(|left| left >= count));
                if !lasts {
                    break;
                }
            }
            if bought == 0 {
                useless.insert((offer.template, offer.instance_type));
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
        useless: &BTreeSet<(TemplateIndex, usize)>,
        budget: &mut Budget,
    ) -> Option<(&Offer, Pattern)> {
        let mut best: Option<(f64, f64, &Offer, Pattern)> = None;
        for offer in self.offers.iter().filter(|offer| !useless.contains(&(offer.template, offer.instance_type))) {
            for order in &self.orders {
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
                worth += self.weights[class] * as_number(i64::try_from(count).unwrap_or(i64::MAX));
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
        let mut wanted =
            OfferingSet { types: engine.problem.templates[offer.template].set.types.clone(), slots: Slots::MAX };
        wanted.types.clear();
        wanted.types.insert(offer.instance_type);
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
        for class in &self.orders[0] {
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
            while demand.get(class).is_some_and(|left| *left > 0) {
                let hosts: Vec<HostIndex> = engine.open_by_fewest_pods().filter(|host| *host >= first).collect();
                if !hosts.into_iter().any(|host| add(engine, *class, self.variants[class], host)) {
                    break;
                }
                take_one(demand, *class);
            }
        }
    }

    fn request(&self, class: ClassIndex) -> &[i64] {
        &self.requests[&class]
    }
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

/// What one node may hold of a class by the class's own rules: host ports, anti-affinity and spread over host names.
fn most_per_node(problem: &Problem<'_>, class: ClassIndex, variant: VariantIndex) -> usize {
    let pods = &problem.classes[class];
    let mut most = if pods.host_ports.is_empty() { usize::MAX } else { 1 };
    for group in &problem.variants[variant].constraints {
        let compiled = &problem.groups[*group];
        let counts_itself = pods.counted_in.binary_search(group).is_ok();
        match &compiled.kind {
            GroupKind::AntiAffinity if counts_itself => most = 1,
            GroupKind::Spread(spread) if counts_itself && problem.domains.is_hostname(compiled.key) => {
                most = most.min(usize::try_from(spread.max_skew).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }
    most
}

/// Types of the templates of one weight, without those that another one beats in price and every dimension and for
/// every class. O(types x kept).
fn offers(
    problem: &Problem<'_>,
    classes: &[ClassIndex],
    variants: &BTreeMap<ClassIndex, VariantIndex>,
    weight: i32,
) -> Vec<Offer> {
    let mut kept: Vec<Offer> = Vec::new();
    for (template_index, template) in
        problem.templates.iter().enumerate().filter(|(_, template)| template.weight == weight)
    {
        let mut offers: Vec<Offer> = Vec::new();
        for (position, entry) in template.offerings.offered(&template.set) {
            let allowed: Vec<Slots> = classes
                .iter()
                .map(|class| match problem.fit_of_template(variants[class], template_index) {
                    Ok(set) if set.types.contains(position) => set.slots & entry.available,
                    _ => 0,
                })
                .collect();
            let usable = allowed.iter().fold(0, |all, slots| all | slots);
            let Some((_, price)) = entry.cheapest(usable) else { continue };
            let mut room = entry.allocatable.clone();
            vectors::add(&mut room, &template.daemon_overhead[position], -1);
            offers.push(Offer { template: template_index, instance_type: position, price, room, allowed });
        }
        offers.sort_by_key(|offer| (offer.price, offer.instance_type));
        let first = kept.len();
        for offer in offers {
            if template.limits.is_empty() && kept[first..].iter().any(|better| dominates(better, &offer)) {
                continue;
            }
            kept.push(offer);
        }
    }
    kept
}

/// Not dearer, and at least as roomy and as welcome to every class.
fn dominates(one: &Offer, other: &Offer) -> bool {
    one.price <= other.price
        && one.room.iter().zip(&other.room).all(|(one, other)| one >= other)
        && one.allowed.iter().zip(&other.allowed).all(|(one, other)| one & other == *other)
}
