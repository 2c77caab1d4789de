//! Takes purchases apart and tries again: ruin and recreate, in the small.
//! Idea: Schrimpf et al., "Record Breaking Optimization Results Using the Ruin and Recreate Principle", 2000.

use std::collections::BTreeMap;

use crate::model::HourlyPrice;
use crate::provision::choice::{Choice, alternatives_of, capacity_of, choose, cost_of};
use crate::scheduler::Demand;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::offerings::{SlotIndex, TypeIndex, alone, bits};
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::vectors;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Mark, OpenNode, Problem};
use cutlist_api::keys;

use super::WorkBudget;
use super::greedy::Markets;
use super::open_nodes;

/// Largest number of nodes that are taken apart together.
const RUIN_NODES_MAX: usize = 3;

/// Improves the nodes opened since the mark until a round finds nothing or the budget is used up.
pub fn improve(engine: &mut Engine<'_, '_>, since: Mark, level: usize, markets: &Markets, budget: &mut WorkBudget) {
    for host in opened_since(engine, since) {
        tighten(engine, host);
    }
    if budget.is_spent() {
        budget.not_tried = opened_since(engine, since).len();
    }
    let mut found = true;
    while found && !budget.is_spent() {
        found = (1..=RUIN_NODES_MAX).any(|size| round(engine, since, level, size, markets, budget));
    }
}

fn opened_since(engine: &Engine<'_, '_>, since: Mark) -> Vec<HostIndex> {
    engine.open_hosts_since(since).filter(|host| !engine.is_closed(*host)).collect()
}

/// Tries groups of nodes that are alike in how well they are used; whether one was improved.
fn round(
    engine: &mut Engine<'_, '_>,
    since: Mark,
    level: usize,
    size: usize,
    markets: &Markets,
    budget: &mut WorkBudget,
) -> bool {
    let mut hosts = opened_since(engine, since);
    if hosts.len() < size {
        return false;
    }
    // Neighbours are of one pool, since only those may be one node.
    let template = |host: HostIndex| engine.open_node(host).map(|open| open.template);
    hosts.sort_by_cached_key(|host| (template(*host), used_share(engine, *host), *host));
    let groups = groups(&hosts, size);
    let mut found = false;
    for (tried, ruined) in groups.iter().enumerate() {
        if budget.is_spent() {
            budget.not_tried = groups.len() - tried;
            break;
        }
        if ruined.iter().all(|host| !engine.is_closed(*host)) && rebuild(engine, since, ruined, level, markets, budget)
        {
            found = true;
        }
    }
    found
}

/// Up to so many nodes every pair is tried; of more, only neighbours.
const PAIRS_OF_MAX: usize = 32;

/// Groups of neighbours; of few nodes every pair.
fn groups(hosts: &[HostIndex], size: usize) -> Vec<Vec<HostIndex>> {
    if size == 2 && hosts.len() <= PAIRS_OF_MAX {
        let pairs = hosts.iter().enumerate().flat_map(|(position, one)| {
            let others = hosts.get(position + 1..).unwrap_or_default();
            others.iter().map(|other| vec![*one, *other])
        });
        return pairs.collect();
    }
    hosts.windows(size).map(<[HostIndex]>::to_vec).collect()
}

/// Thousandths of the dearest resource in use; the emptiest nodes are worth looking at first.
fn used_share(engine: &Engine<'_, '_>, host: HostIndex) -> i64 {
    let Some(open) = engine.open_node(host) else { return 0 };
    let shares = open.requested.iter().zip(&open.room_most).filter(|(_, room)| **room > 0);
    shares.map(|(requested, room)| requested.saturating_mul(1000) / room).max().unwrap_or(0)
}

/// Gives up some nodes and buys again for their pods, in several ways; keeps the best if it is better.
fn rebuild(
    engine: &mut Engine<'_, '_>,
    since: Mark,
    ruined: &[HostIndex],
    level: usize,
    markets: &Markets,
    budget: &mut WorkBudget,
) -> bool {
    let before = (cost_of_all(engine, ruined) + engine.price_of_concentration(), ruined.len());
    let weights_before = pods_by_weight(engine, ruined);
    let highest_weight =
        ruined.iter().filter_map(|host| engine.open_node(*host)).map(|open| weight_of(engine, open)).max();
    let skews_before = engine.skews_around(ruined);
    let too_full_before = engine.domains_that_may_be_too_full().len();
    let mark = engine.mark();
    let avoided = engine.avoids_concentration();
    for (how, avoids) in ways_to_rebuild(engine, ruined) {
        engine.avoid_concentration(avoids);
        let mut demand = discard_all(engine, ruined);
        budget.spend_on_pods(1 + demand.values().sum::<usize>());
        match how {
            Rebuilding::Together => on_own_nodes(engine, level, &mut demand, 1, highest_weight, before.0),
            Rebuilding::Halved => on_own_nodes(engine, level, &mut demand, 2, highest_weight, before.0),
            Rebuilding::WithRoomOfOthers => {
                with_others_room(engine, since, level, &mut demand, before.0, markets, budget);
            }
        }
        let bought = opened_since(engine, mark);
        for host in &bought {
            tighten(engine, *host);
        }
        let after = (cost_of_all(engine, &bought) + engine.price_of_concentration(), bought.len());
        engine.avoid_concentration(avoided);
        let as_spread =
            || engine.keeps_spreads(&skews_before) && engine.domains_that_may_be_too_full().len() <= too_full_before;
        if demand.is_empty() && after < before && pods_by_weight(engine, &bought) >= weights_before && as_spread() {
            return true;
        }
        engine.revert(mark);
    }
    false
}

/// Where pods of nodes that are given up go.
#[derive(Clone, Copy)]
enum Rebuilding {
    /// All on one node.
    Together,
    /// Half of each class on one node, and the rest on another.
    Halved,
    WithRoomOfOthers,
}

/// Each with whether it avoids concentration. What pods are worth is what they cost beside the most others, so where each node costs
/// something beside its instance nothing that is bought by worth is ever half a node, whatever concentration counts.
fn ways_to_rebuild(engine: &Engine<'_, '_>, ruined: &[HostIndex]) -> Vec<(Rebuilding, bool)> {
    let mut ways = vec![(Rebuilding::Together, false), (Rebuilding::WithRoomOfOthers, false)];
    if engine.problem.concentration.is_some() {
        ways.extend([(Rebuilding::Together, true), (Rebuilding::WithRoomOfOthers, true)]);
        if ruined.len() == 1 {
            ways.push((Rebuilding::Halved, false));
        }
    }
    ways
}

/// Equal parts of each class on so many new nodes of their own, as in [`in_one_node`]; the demand is empty afterwards, or what was placed
/// is of no use.
fn on_own_nodes(
    engine: &mut Engine<'_, '_>,
    level: usize,
    demand: &mut Demand,
    nodes: usize,
    least_weight: Option<i32>,
    most: HourlyPrice,
) {
    let mut left = demand.clone();
    for nodes_left in (1..=nodes).rev() {
        let part = left.iter().map(|(class, count)| (*class, count.div_ceil(nodes_left)));
        let mut part: Demand = part.filter(|(_, count)| *count > 0).collect();
        for (class, count) in &part {
            left.entry(*class).and_modify(|left| *left -= count);
        }
        let variant = |class: &ClassIndex| engine.problem.classes[*class].variants.get(level).copied();
        let variants: Option<Vec<(ClassIndex, VariantIndex)>> =
            part.keys().map(|class| Some((*class, variant(class)?))).collect();
        let Some(variants) = variants.filter(|_| !part.is_empty()) else { return };
        in_one_node(engine, &variants, &mut part, Pools::OfWeight(least_weight.unwrap_or_default()), most);
        if !part.is_empty() {
            return;
        }
    }
    demand.clear();
}

fn weight_of(engine: &Engine<'_, '_>, open: &OpenNode) -> i32 {
    engine.problem.templates[open.template].weight
}

/// Pods by the weight of their pool, highest first: weights say where pods go, whatever that costs.
fn pods_by_weight(engine: &Engine<'_, '_>, hosts: &[HostIndex]) -> Vec<usize> {
    let mut weights: Vec<i32> = engine.problem.templates.iter().map(|template| template.weight).collect();
    weights.sort_unstable_by(|one, two| two.cmp(one));
    weights.dedup();
    let of_weight = |weight: &i32| {
        let alike =
            hosts.iter().filter(|host| engine.open_node(**host).is_some_and(|open| weight_of(engine, open) == *weight));
        alike.map(|host| engine.host(*host).pod_count).sum()
    };
    weights.iter().map(of_weight).collect()
}

fn discard_all(engine: &mut Engine<'_, '_>, hosts: &[HostIndex]) -> Demand {
    let mut demand = BTreeMap::new();
    for host in hosts {
        for (class, count) in engine.discard(*host) {
            *demand.entry(class).or_insert(0) += usize::try_from(count).unwrap_or(usize::MAX);
        }
    }
    demand
}

/// Of which pools a node may be.
#[derive(Clone, Copy, Debug)]
pub enum Pools {
    /// Those of at least this weight.
    OfWeight(i32),
    /// As the reference opens nodes: the first in the order of their weights that makes one for the largest pod.
    FirstInOrder,
}

/// Everything on one node of the cheapest type that holds it, of these pools, if it costs no more than
/// `most` with what it costs beside its instance; the demand is empty afterwards, or nothing has changed. `variants`: what each class asks for. O(templates x types), then O(pods).
pub fn in_one_node(
    engine: &mut Engine<'_, '_>,
    variants: &[(ClassIndex, VariantIndex)],
    demand: &mut Demand,
    pools: Pools,
    most: HourlyPrice,
) {
    let problem = engine.problem;
    let first = match pools {
        Pools::FirstInOrder => first_in_order(engine, variants),
        Pools::OfWeight(_) => None,
    };
    let may_be = |template: &TemplateIndex| match pools {
        Pools::OfWeight(least) => problem.templates[*template].weight >= least,
        Pools::FirstInOrder => first == Some(*template),
    };
    let mut offers: Vec<(HourlyPrice, TemplateIndex, TypeIndex)> = problem
        .templates
        .indices()
        .filter(may_be)
        .filter_map(|template| cheapest_that_holds(problem, template, variants, demand))
        .collect();
    offers.sort_unstable();
    let mark = engine.mark();
    for (_, template, instance_type) in offers.into_iter().filter(|(price, ..)| *price <= most) {
        if place_all(engine, template, instance_type, variants, demand) {
            demand.clear();
            return;
        }
        engine.revert(mark);
    }
}

/// The first template that opens a node for the largest of the pods.
fn first_in_order(engine: &Engine<'_, '_>, variants: &[(ClassIndex, VariantIndex)]) -> Option<TemplateIndex> {
    let problem = engine.problem;
    let (class, variant) = *variants.iter().max_by_key(|(class, _)| &problem.classes[*class].request)?;
    problem.templates.indices().find(|template| engine.opened(class, variant, *template, None).is_ok())
}

/// The cheapest type of a template with room for all of the demand, by resources and requirements alone, and what a node of it costs.
fn cheapest_that_holds(
    problem: &Problem<'_>,
    template: TemplateIndex,
    variants: &[(ClassIndex, VariantIndex)],
    demand: &Demand,
) -> Option<(HourlyPrice, TemplateIndex, TypeIndex)> {
    let compiled = &problem.templates[template];
    let mut set = compiled.set.clone();
    let mut requested = vec![0; problem.dimensions.count()];
    for (class, variant) in variants {
        set.intersect(problem.purchasable(*variant, template).ok()?);
        vectors::add(
            &mut requested,
            &problem.classes[*class].request,
            i64::try_from(demand[class]).unwrap_or(i64::MAX),
        );
    }
    set.keep_types(&compiled.rooms.fitting(&requested, set.types()));
    compiled.offerings.cheapest(&set).map(|(position, _, price)| (price + compiled.cost_beside, template, position))
}

/// Opens a node of the type and puts every pod on it; false when one finds no place, or a limit does not allow the node.
fn place_all(
    engine: &mut Engine<'_, '_>,
    template: TemplateIndex,
    instance_type: TypeIndex,
    variants: &[(ClassIndex, VariantIndex)],
    demand: &Demand,
) -> bool {
    let all = &engine.problem.templates[template].set;
    let mut host = None;
    for (class, variant) in variants {
        for _ in 0..demand[class] {
            let placed = match host {
                Some(host) => open_nodes::add(engine, *class, *variant, host),
                None => {
                    host = open_nodes::open(engine, *class, *variant, template, instance_type, all.slots);
                    host.is_some()
                }
            };
            if !placed {
                return false;
            }
        }
    }
    host.is_some_and(|host| tighten(engine, host))
}

/// Room of the other open nodes first, then new ones.
fn with_others_room(
    engine: &mut Engine<'_, '_>,
    since: Mark,
    level: usize,
    demand: &mut Demand,
    most: HourlyPrice,
    markets: &Markets,
    budget: &mut WorkBudget,
) {
    let problem = engine.problem;
    let variant_of = |class: ClassIndex| problem.classes[class].variants.get(level).copied();
    open_nodes::use_those_open(engine, since.hosts(), demand, variant_of);
    markets.fill(engine, since.hosts(), demand, most, budget);
}

/// What the instances of the nodes opened since the mark cost together.
pub fn price_since(engine: &Engine<'_, '_>, since: Mark) -> HourlyPrice {
    let price = |host: &HostIndex| Some(choose(engine, engine.open_node(*host)?)?.price);
    opened_since(engine, since).iter().filter_map(price).sum()
}

/// What the nodes opened since the mark cost together, with what they cost beside their instances.
pub fn cost_since(engine: &Engine<'_, '_>, since: Mark) -> HourlyPrice {
    cost_of_all(engine, &opened_since(engine, since))
}

fn cost_of_all(engine: &Engine<'_, '_>, hosts: &[HostIndex]) -> HourlyPrice {
    hosts.iter().map(|host| cost_of(engine, *host)).sum()
}

/// Settles an open node on the cheapest type that holds its pods. False when the pool's limits allow none.
pub fn tighten(engine: &mut Engine<'_, '_>, host: HostIndex) -> bool {
    let Some(open) = engine.open_node(host) else { return false };
    let Some(set) = alternatives_of(engine, host) else { return true };
    let widest = OpenNode { set, ..open.clone() };
    let template = &engine.problem.templates[open.template];
    let cheapest = engine.cheapest_for_concentration(host, &widest.set);
    let chosen = cheapest.map(|(instance_type, slot, price)| Choice { instance_type, slot, price });
    let is_spot = |slot: SlotIndex| template.offerings.slots[slot].capacity_type == keys::SPOT;
    // Where it matters in which spot pool a node is, it is decided here.
    let settles = chosen.as_ref().map(|choice| (choice.slot, is_spot(choice.slot)));
    let Some(choice) = chosen.or_else(|| choose(engine, &widest)) else { return true };
    let entry = &template.offerings.types[choice.instance_type];
    // Zones that cost the same stay open: a pod that comes later may need one of them.
    let same_price = bits(widest.set.slots & entry.available).filter(|slot| entry.price(*slot) == choice.price);
    let same_price = same_price.filter(|slot| {
        settles.is_none_or(|(chosen, is_chosen_spot)| *slot == chosen || !(is_chosen_spot || is_spot(*slot)))
    });
    let slots = same_price.fold(0, |slots, slot| slots | alone(slot));
    let capacity = capacity_of(engine, &widest, &choice);
    let allowed = engine.limit_exceeded(open.template, &open.limit_capacity, &capacity).is_none();
    let set = widest.set.only(choice.instance_type, slots);
    engine.fix(host, set, capacity);
    allowed
}
