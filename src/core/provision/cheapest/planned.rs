//! A fleet chosen on paper, whole nodes with all their pods, and then carried out.
//!
//! What topology says about zones and capacity types is settled first: pods that must be spread over zones, or be together in one, are
//! sent to zones one after the other, each to the cheapest that is allowed. Then every zone has its own demand, to which [`crate::programs::columns`] finds
//! nodes. They are opened as the pods arrive in that same order, so that each arrival is allowed. What comes out otherwise than
//! planned is bought for like everything else.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{HourlyPrice, IndexVec};
use crate::programs::columns::{FilledBin, filled_bins};
use crate::programs::dual::{Effort, dual_prices};
use crate::programs::filling::Item;
use crate::programs::number;
use crate::scheduler::Demand;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::offerings::{Slots, is_slot_label};
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::topology::{Domain, KeyIndex};
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use cutlist_api::keys;

use super::WorkBudget;
use super::kinds::{DomainChoice, SizeClass};
use super::market::{Counted, Market, Offer, PRICE_WORK, Purpose, offers, slots_in, with_bins};
use super::open_nodes::{add, open, use_those_open};
use super::weights::share;
use super::zones::{self, Counts};

/// More pods than this are not sent to zones one by one.
const PODS_MAX: usize = 500_000;

/// Nodes that are asked for one pod at most: what holds it back on so many holds it back on the others.
const TRIES_MAX: usize = 64;

/// Multiplications for prices by zone, of which there are several times as many.
const ZONES_WORK: u64 = PRICE_WORK / 2 * 3;

/// Multiplications in search of nodes that take as long as a look of the search's budget.
pub const MULTIPLICATIONS_PER_LOOK: u64 = 120;

/// The same for each pod: whoever waits for a few pods alone is not kept waiting for the last percent.
const MULTIPLICATIONS_PER_POD: u64 = 2_500_000;

/// Pods in the order of their arrival, each with the kind that it arrives as.
type Arrivals = Vec<(ClassIndex, usize)>;

/// In which slots a template sells.
type SlotsOfTemplates = IndexVec<TemplateIndex, Slots>;

/// The fleet on paper.
pub struct Planned {
    offers: Vec<Offer>,
    /// `bin` is the position of an offer, `items` are positions of kinds: those of the market, divided by zone.
    nodes: Vec<FilledBin>,
    arrivals: Arrivals,
}

/// Fleets on paper for the same demand, by market: made when they are carried out for the first time.
pub struct Plans {
    /// Work that each may take.
    pub looks: u64,
    pub of_markets: Vec<Option<Planned>>,
}

impl Plans {
    /// None yet.
    pub fn with(looks: u64) -> Self {
        Self { looks, of_markets: Vec::new() }
    }

    /// Whether there is one for every market.
    pub fn are_complete(&self) -> bool {
        self.of_markets.iter().all(Option::is_some)
    }
}

impl Planned {
    /// Nodes for the demand that the market is for. `None` where this is not the way: for demands too varied or too many for it, and
    /// where only so many nodes of some kind are to be had, which the program does not know. `looks`: work that it may take.
    pub fn new(
        engine: &mut Engine<'_, '_>,
        market: &Market,
        order: &[ClassIndex],
        demand: &Demand,
        looks: u64,
        budget: &mut WorkBudget,
    ) -> Option<Self> {
        if demand.values().sum::<usize>() > PODS_MAX || market.offers.iter().any(|offer| offer.reserved) {
            return None;
        }
        let (kinds, items, arrivals) = divided(engine, market, order, demand);
        if kinds.is_empty() {
            return None;
        }
        let problem = engine.problem;
        let weight = Some(market.weight_of_pools);
        let offers = offers(problem, &kinds, weight, Counted::WholeNode, Purpose::Pricing);
        let (offers, bins) = with_bins(&kinds, &items, offers.into_iter());
        let mut worth: Vec<f64> = kinds.iter().map(|kind| market.worth[market.kind_of[&kind.classes[0]]]).collect();
        if kinds.iter().any(|kind| !kind.place.is_empty()) {
            // The market knows what a pod is worth where it may be in any zone.
            worth = dual_prices(&items, &bins, &worth, Effort::rough(ZONES_WORK)).per_piece;
        }
        let most = looks.saturating_mul(MULTIPLICATIONS_PER_LOOK);
        let pods = demand.values().sum::<usize>() as u64;
        let most = most.min(pods.saturating_mul(MULTIPLICATIONS_PER_POD));
        let mut left = most;
        let nodes = filled_bins(&items, &bins, &worth, &mut left)?;
        budget.spend((most - left) / MULTIPLICATIONS_PER_LOOK);
        Some(Self { offers, nodes, arrivals })
    }

    /// Opens the nodes and places the pods as far as that is allowed, elsewhere on nodes opened from `first` on where it is not; the
    /// demand is what is left.
    pub fn carry_out(&self, engine: &mut Engine<'_, '_>, market: &Market, first: HostIndex, demand: &mut Demand) {
        self.open_as_planned(engine, market, demand);
        use_those_open(engine, first, demand, |class| market.variants.get(&class).copied());
    }

    fn open_as_planned(&self, engine: &mut Engine<'_, '_>, market: &Market, demand: &mut Demand) {
        let mut sites: Vec<PlannedNode> = self.nodes.iter().map(PlannedNode::new).collect();
        let mut wanting: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (position, node) in self.nodes.iter().enumerate() {
            node.items.iter().for_each(|(kind, _)| wanting.entry(*kind).or_default().push(position));
        }
        for (class, kind) in &self.arrivals {
            let Some(left) = demand.get_mut(class).filter(|left| **left > 0) else { continue };
            let Some(wanting) = wanting.get_mut(kind) else { continue };
            let variant = market.variants[class];
            let mut tried = wanting.iter().take(TRIES_MAX).enumerate();
            let mut arrives = |site: usize| self.arrive(engine, &mut sites[site], *class, variant);
            let Some((position, site)) = tried.find_map(|(position, site)| arrives(*site).then_some((position, *site)))
            else {
                continue;
            };
            *left -= 1;
            if sites[site].took(*kind) {
                wanting.remove(position);
            }
        }
    }

    /// Puts a pod on the node, which is opened for it if it is the first.
    fn arrive(
        &self,
        engine: &mut Engine<'_, '_>,
        site: &mut PlannedNode,
        class: ClassIndex,
        variant: VariantIndex,
    ) -> bool {
        if let Some(host) = site.host {
            return add(engine, class, variant, host);
        }
        let Offer { template, instance_type, slots, .. } = self.offers[site.offer];
        site.host = open(engine, class, variant, template, instance_type, slots);
        site.host.is_some()
    }
}

/// A node on paper, while it comes about.
struct PlannedNode {
    offer: usize,
    host: Option<HostIndex>,
    /// By kind: pods that are still to come.
    expected: BTreeMap<usize, usize>,
}

impl PlannedNode {
    fn new(node: &FilledBin) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number of pods on one node"
        )]
        let expected = node.items.iter().map(|(kind, count)| (*kind, *count as usize)).collect();
        Self { offer: node.bin, host: None, expected }
    }

    /// Whether a pod of the kind, which has come, was the last.
    fn took(&mut self, kind: usize) -> bool {
        let left = self.expected.entry(kind).or_default();
        *left = left.saturating_sub(1);
        *left == 0
    }
}

/// The kinds of a market by zone where topology decides on zones, what each asks for, and the pods in an order in which each is
/// allowed where it goes.
fn divided(
    engine: &mut Engine<'_, '_>,
    market: &Market,
    order: &[ClassIndex],
    demand: &Demand,
) -> (Vec<SizeClass>, Vec<Item>, Arrivals) {
    let problem = engine.problem;
    let waiting = order.iter().filter(|class| demand.contains_key(class) && market.kind_of.contains_key(class));
    let waiting: Vec<ClassIndex> = waiting.copied().collect();
    let keys = slot_keys(problem);
    let is_bound = |engine: &Engine<'_, '_>, class: ClassIndex| {
        keys.iter().any(|key| engine.is_divided(*key, class, market.variants[&class]))
    };
    let (bound, free): (Vec<ClassIndex>, Vec<ClassIndex>) =
        waiting.into_iter().partition(|class| is_bound(engine, *class));
    let one_by_one = |classes: &[ClassIndex]| -> Vec<ClassIndex> {
        classes.iter().flat_map(|class| std::iter::repeat_n(*class, demand[class])).collect()
    };
    let mut sent = send(engine, market, &keys, &one_by_one(&bound));
    // Whom other topology holds back comes before those who go anywhere.
    let is_constrained = |class: &ClassIndex| !problem.variants[market.variants[class]].constraints.is_empty();
    let (constrained, rest): (Vec<ClassIndex>, Vec<ClassIndex>) = free.into_iter().partition(is_constrained);
    sent.extend(
        one_by_one(&constrained).into_iter().chain(one_by_one(&rest)).map(|class| (class, DomainChoice::new())),
    );
    by_kind_and_place(market, &sent)
}

/// Keys whose domains are slots of offerings: capacity types first, which differ most in price.
fn slot_keys(problem: &Problem<'_>) -> Vec<KeyIndex> {
    let known = problem.domains.keys().filter(|key| is_slot_label(problem.domains.name(*key)));
    let mut known: Vec<KeyIndex> = known.collect();
    known.sort_by_key(|key| problem.domains.name(*key) != keys::CAPACITY_TYPE);
    known
}

/// Where pods go that topology binds to slots, one after the other: each to the cheapest that is allowed. Those that may go nowhere
/// are left out.
fn send(
    engine: &mut Engine<'_, '_>,
    market: &Market,
    keys: &[KeyIndex],
    pods: &[ClassIndex],
) -> Vec<(ClassIndex, DomainChoice)> {
    let mut sent: Vec<(ClassIndex, DomainChoice)> = pods.iter().map(|class| (*class, DomainChoice::new())).collect();
    for key in keys {
        let variant = |class: ClassIndex| market.variants[&class];
        let mut lost: BTreeSet<usize> = BTreeSet::new();
        let concerns = |engine: &Engine<'_, '_>, class: ClassIndex| engine.is_divided(*key, class, variant(class));
        let concerned: Vec<usize> = (0..sent.len()).filter(|position| concerns(engine, sent[*position].0)).collect();
        if concerned.is_empty() {
            continue;
        }
        let travellers = concerned.iter().map(|position| &sent[*position]);
        let preferred = preferred(engine.problem, market, *key, travellers.clone());
        let pods: Vec<(ClassIndex, VariantIndex)> = travellers.map(|(class, _)| (*class, variant(*class))).collect();
        let destinations = engine.divided(*key, &pods, |position| {
            let (class, place) = &sent[concerned[position]];
            &preferred[&(market.kind_of[class], place.clone())]
        });
        for (position, domain) in concerned.into_iter().zip(destinations) {
            match domain {
                Some(domain) => sent[position].1.push((*key, domain)),
                None => {
                    lost.insert(position);
                }
            }
        }
        let mut position = 0;
        sent.retain(|_| {
            position += 1;
            !lost.contains(&(position - 1))
        });
    }
    sent
}

/// By kind, and the place that is decided on so far, the domains of a key where it can be and what a pod costs there, cheapest first.
fn preferred<'s>(
    problem: &Problem<'_>,
    market: &Market,
    key: KeyIndex,
    pods: impl Iterator<Item = &'s (ClassIndex, DomainChoice)>,
) -> BTreeMap<(usize, DomainChoice), Vec<(HourlyPrice, Domain)>> {
    let domains: Vec<Domain> = problem.domains.values(key).map(|(_, domain)| domain).collect();
    let mut slots: BTreeMap<DomainChoice, Vec<(Domain, SlotsOfTemplates)>> = BTreeMap::new();
    let mut sold_to: BTreeMap<usize, Vec<&Offer>> = BTreeMap::new();
    let mut preferred: BTreeMap<(usize, DomainChoice), Vec<(HourlyPrice, Domain)>> = BTreeMap::new();
    for (class, place) in pods {
        let position = market.kind_of[class];
        if preferred.contains_key(&(position, place.clone())) {
            continue;
        }
        let slots = slots.entry(place.clone()).or_insert_with(|| {
            let within = |domain: Domain| [place.as_slice(), &[(key, domain)]].concat();
            let of_templates = |domain| problem.templates.iter().map(|it| slots_in(it, &within(domain))).collect();
            domains.iter().map(|domain| (*domain, of_templates(*domain))).collect()
        });
        let kind = &market.kinds[position];
        let sold = || market.offers.iter().filter(|offer| offer.allowed(kind) != 0).collect();
        let sold = sold_to.entry(kind.compatibility).or_insert_with(sold);
        let priced = slots.iter().filter_map(|(domain, slots)| Some((cheapest_in(sold, kind, slots)?, *domain)));
        let mut priced: Vec<(HourlyPrice, Domain)> = priced.collect();
        priced.sort_by_key(|(price, _)| *price);
        preferred.insert((position, place.clone()), priced);
    }
    preferred
}

/// What one pod of a kind costs at least in some slots of each template, for the part of a node that it takes.
fn cheapest_in(sold: &[&Offer], kind: &SizeClass, slots: &SlotsOfTemplates) -> Option<HourlyPrice> {
    let there = sold.iter().filter(|offer| offer.allowed(kind) & slots[offer.template] != 0);
    let shares = there.map(|offer| (offer.price.dollars(), share(&kind.request, &offer.room)));
    shares
        .filter(|(_, share)| *share <= 1.0)
        .filter_map(|(price, share)| HourlyPrice::from_dollars(price * share))
        .min()
}

fn by_kind_and_place(market: &Market, sent: &[(ClassIndex, DomainChoice)]) -> (Vec<SizeClass>, Vec<Item>, Arrivals) {
    let mut counts = Counts::new();
    for (class, place) in sent {
        *counts.entry((market.kind_of[class], place.clone())).or_default() += 1;
    }
    let kinds = zones::divided(&market.kinds, &counts);
    let item = |((undivided, _), count): (&(usize, DomainChoice), &usize)| Item {
        count: number(*count),
        ..market.items[*undivided].clone()
    };
    let items = counts.iter().map(item).collect();
    let positions: BTreeMap<(usize, DomainChoice), usize> = counts.into_keys().zip(0..).collect();
    let arrivals = sent.iter().map(|(class, place)| (*class, positions[&(market.kind_of[class], place.clone())]));
    let arrivals = arrivals.collect();
    (kinds, items, arrivals)
}
