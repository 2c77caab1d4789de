//! Finds new places for the pods of a node that goes.

use std::collections::BTreeMap;
use std::rc::Rc;

use fixedbitset::FixedBitSet;

use crate::inputs::Inputs;
use crate::model::{HourlyPrice, IndexVec};
use crate::provision::cheapest::greedy::Markets;
use crate::provision::cheapest::improve::Pools;
use crate::provision::cheapest::open_nodes;
use crate::provision::cheapest::{WorkBudget, improve};
use crate::provision::choice::{Choice, LaunchLists, choose};
use crate::provision::explain::explain;
use crate::provision::karpenter;
use crate::provision::{Provisioning, Purchase};
use crate::scheduler::Demand;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Mark, Problem};
use crate::snapshot::PodIndex;
use crate::snapshot::pod::is_of_buffer;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::settings::Packing;

use super::candidate::Candidate;
use super::obstacle::NodeObstacle;

/// Whether a node that exists may take pods that have to move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// Initialized, and staying.
    pub stays: bool,
    /// A pod came or went a moment ago: it may still be on its way to being a candidate, so it takes no pods of a
    /// consolidation.
    pub recently_changed: bool,
    /// Gets pods by this plan.
    pub receives: bool,
    /// Drifted, expired, or its pool was removed: what is put there would have to move again.
    pub leaving: bool,
}

impl Target {
    /// Whether it may take pods that have to move.
    pub fn is_open(self) -> bool {
        self.stays && !self.leaving
    }

    /// Whether it may take pods that are moved to save money.
    pub fn is_open_to_consolidation(self) -> bool {
        self.is_open() && !self.recently_changed
    }
}

/// The new places of one node's pods.
#[derive(Debug, Default)]
pub struct Rehoming {
    pub purchases: Vec<Purchase>,
    /// Position in the snapshot, host.
    pub placements: Vec<(PodIndex, HostIndex)>,
}

/// By host, for nodes that exist.
pub fn targets(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
) -> IndexVec<HostIndex, Target> {
    let mut targets: IndexVec<HostIndex, Target> = IndexVec::new();
    for machine in &engine.problem.machines {
        let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool());
        let after = pool.and_then(|pool| pool.spec.disruption.consolidate_after.seconds());
        let last = machine.claim.and_then(NodeClaim::last_pod_event);
        let recently_changed = after.zip(last).is_some_and(|(after, last)| {
            crate::model::time::seconds_between(last.min(inputs.now), inputs.now)
                < i64::try_from(after).unwrap_or(i64::MAX)
        });
        let stays = machine.is_initialized() && !machine.is_being_removed();
        targets.push(Target { stays, recently_changed, ..Target::default() });
    }
    let real = provisioning.placements.iter().filter(|(pod, _)| !is_of_buffer(&inputs.snapshot.pods[*pod]));
    for (_, host) in real {
        targets[*host].receives = true;
    }
    targets
}

/// Takes the candidates' pods off and puts them on other nodes that allow it. What is left by class: pods that fit nowhere, and those
/// that prefer what only a new node has.
pub fn move_to_existing(
    engine: &mut Engine<'_, '_>,
    candidates: &[&Candidate],
    allowed: &dyn Fn(HostIndex) -> bool,
) -> Demand {
    let filling: FixedBitSet = engine.existing_hosts().filter(|host| allowed(*host)).map(usize::from).collect();
    let mut demand = take_off(engine, candidates);
    place_on(engine, &mut demand, &mut Rooms { filling, ..Rooms::default() });
    demand
}

/// Puts pods that prefer what no new node could be bought for on nodes that allow it.
pub fn move_without_preferences(engine: &mut Engine<'_, '_>, demand: &mut Demand, allowed: &dyn Fn(HostIndex) -> bool) {
    let filling: FixedBitSet = engine.existing_hosts().filter(|host| allowed(*host)).map(usize::from).collect();
    place_on(engine, demand, &mut Rooms { filling, gives_up: true, ..Rooms::default() });
}

/// Whether nodes that are on their way, or bought by now, have room for all of the demand as they are: none of those becomes another type,
/// or goes to another zone. What finds a place is placed.
pub fn fits_on_its_way(
    engine: &mut Engine<'_, '_>,
    demand: &mut Demand,
    is_coming: &dyn Fn(HostIndex) -> bool,
) -> bool {
    move_without_preferences(engine, demand, is_coming);
    let problem = engine.problem;
    let chosen = chosen(engine);
    let levels = demand.keys().map(|class| problem.classes[*class].variants.len()).max().unwrap_or(0);
    for level in 0..levels {
        let variant_of = |class: ClassIndex| problem.classes[class].variants.get(level).copied();
        open_nodes::use_those_open(engine, problem.nodes.end(), demand, variant_of);
    }
    demand.is_empty() && self::chosen(engine) == chosen
}

/// What the nodes that are bought by now become, in their order.
fn chosen(engine: &Engine<'_, '_>) -> Vec<Option<Choice>> {
    let open = engine.open_hosts().filter(|host| !engine.is_closed(*host));
    open.map(|host| choose(engine, engine.open_node(host)?)).collect()
}

/// Takes the pods off nodes, which take no pods any more; how many of each class.
pub fn take_off(engine: &mut Engine<'_, '_>, candidates: &[&Candidate]) -> Demand {
    let mut demand: Demand = BTreeMap::new();
    for candidate in candidates {
        for pod in candidate.displaced() {
            if let Some(class) = engine.problem.class_of_pod[pod] {
                *demand.entry(class).or_insert(0) += 1;
                engine.remove_pod(class, candidate.host);
            }
        }
        // They are gone with the node, and nothing comes in their place yet, or ever.
        for class in
            candidate.held_by_disk.union(&candidate.staying).filter_map(|pod| engine.problem.class_of_pod[*pod])
        {
            engine.remove_pod(class, candidate.host);
        }
        engine.close(candidate.host);
    }
    demand
}

/// Where pods that lose their node may go.
#[derive(Clone, Debug, Default)]
pub struct Rooms {
    /// Nodes that are filled already.
    pub filling: FixedBitSet,
    /// Those to be filled next, best first.
    pub next: Vec<FixedBitSet>,
    /// Those that take no pods until it has been quiet there for long enough.
    pub recently_changed: FixedBitSet,
    pub guide: Rc<Guide>,
    pub allotments: Allotments,
    /// Whether pods go nowhere but where they are allotted.
    pub only_allotted: bool,
    /// Whether pods give up what they prefer although a new node would have it: where none is bought in the end.
    pub gives_up: bool,
}

/// Where pods of a class should rather go than elsewhere.
#[derive(Debug, Default)]
pub struct Guide {
    pub kind_of: BTreeMap<ClassIndex, usize>,
    /// By kind: hosts of one set are alike; best set first.
    pub preferred: Vec<Vec<FixedBitSet>>,
}

/// How many pods which hosts are to take.
#[derive(Clone, Debug, Default)]
pub struct Allotments {
    /// By class, which may share one with others: position of its allotment.
    of_class: Rc<BTreeMap<ClassIndex, usize>>,
    left: Vec<Allotment>,
}

#[derive(Clone, Debug, Default)]
struct Allotment {
    hosts: FixedBitSet,
    pods: BTreeMap<HostIndex, usize>,
}

impl Allotments {
    /// `hosts`: position of an allotment, host, how many pods.
    pub fn new(
        of_class: BTreeMap<ClassIndex, usize>,
        hosts: impl IntoIterator<Item = (usize, HostIndex, usize)>,
    ) -> Self {
        let count = of_class.values().max().map_or(0, |most| most + 1);
        let mut left = vec![Allotment::default(); count];
        for (position, host, pods) in hosts {
            let allotment = &mut left[position];
            allotment.hosts.grow_and_insert(host.into());
            *allotment.pods.entry(host).or_default() += pods;
        }
        Self { of_class: Rc::new(of_class), left }
    }

    /// Hosts that are to take more pods of the class.
    fn hosts(&self, class: ClassIndex) -> Option<&FixedBitSet> {
        Some(&self.left[*self.of_class.get(&class)?].hosts)
    }

    fn take(&mut self, class: ClassIndex, host: HostIndex) {
        let Some(position) = self.of_class.get(&class) else { return };
        let allotment = &mut self.left[*position];
        if let Some(pods) = allotment.pods.get_mut(&host) {
            *pods -= 1;
            allotment.hosts.set(host.into(), *pods > 0);
        }
    }
}

impl Rooms {
    /// Nothing is filled that is not among these already.
    pub fn all(&self) -> FixedBitSet {
        self.next.iter().fold(self.filling.clone(), |all, next| &all | next)
    }

    fn fill(&mut self, host: HostIndex) {
        self.filling.grow_and_insert(host.into());
    }
}

/// Puts pods on nodes that exist: where they are allotted, then where the guide prefers them, then on those that are filled already,
/// then on the first of `next` with a node that takes one, which thereby is filled as well. Largest classes first. What is left
/// stays in the demand, and with it what prefers something that a new node would have: as in the reference, where a preference is given
/// up when neither a node there is nor a new one satisfies it. O(pods x nodes / 64), mostly less. ConcentrationPenalties are avoided as far as the room allows it.
pub fn place_on(engine: &mut Engine<'_, '_>, demand: &mut Demand, rooms: &mut Rooms) {
    if engine.problem.concentration.is_some() {
        engine.avoid_concentration(true);
        place_where_allowed(engine, demand, rooms);
        engine.avoid_concentration(false);
    }
    place_where_allowed(engine, demand, rooms);
}

fn place_where_allowed(engine: &mut Engine<'_, '_>, demand: &mut Demand, rooms: &mut Rooms) {
    let problem = engine.problem;
    let guide = Rc::clone(&rooms.guide);
    let all = (!guide.kind_of.is_empty()).then(|| rooms.all());
    for class in largest_first(problem, demand) {
        let Some(count) = demand.get_mut(&class) else { continue };
        let kind = guide.kind_of.get(&class).copied();
        for (level, variant) in problem.classes[class].variants.iter().enumerate() {
            place_as_allotted(engine, (class, *variant), count, rooms);
            if !rooms.only_allotted {
                if let Some((kind, all)) = kind.zip(all.as_ref()) {
                    let preferred = guide.preferred.get(kind).into_iter().flatten().map(|set| set & all);
                    preferred.for_each(|set| place_among(engine, (class, *variant), count, rooms, &set));
                }
                place_anywhere(engine, (class, *variant), count, rooms);
            }
            if *count == 0 || !rooms.gives_up && prefers_a_new_node(engine, class, level) {
                break;
            }
        }
    }
    demand.retain(|_, count| *count > 0);
}

/// Whether a pod of the class that found no node at this level of preferences, or at those before it, goes on a new node rather than
/// giving up a preference.
pub fn prefers_a_new_node(engine: &Engine<'_, '_>, class: ClassIndex, level: usize) -> bool {
    let pods = &engine.problem.classes[class];
    let gives_up_next = level + 1 >= pods.alternatives && level + 1 + pods.without_preferences <= pods.variants.len();
    let first = if level + 1 == pods.alternatives { 0 } else { level };
    gives_up_next && pods.variants[first..=level].iter().any(|variant| engine.opens(class, *variant))
}

/// Classes of a demand in the order in which they look for a place.
pub fn largest_first(problem: &Problem<'_>, demand: &Demand) -> Vec<ClassIndex> {
    let mut order: Vec<ClassIndex> = demand.keys().copied().collect();
    order.sort_by_key(|class| {
        let request = &problem.classes[*class].request;
        (std::cmp::Reverse((request[0], request[1])), *class)
    });
    order
}

fn place_as_allotted(
    engine: &mut Engine<'_, '_>,
    (class, variant): (ClassIndex, VariantIndex),
    count: &mut usize,
    rooms: &mut Rooms,
) {
    while *count > 0
        && let Some(hosts) = rooms.allotments.hosts(class)
        && let Some(found) = engine.find_existing(class, variant, HostIndex::default(), Some(hosts))
    {
        rooms.allotments.take(class, found);
        put(engine, class, found, count, rooms);
    }
}

fn place_among(
    engine: &mut Engine<'_, '_>,
    (class, variant): (ClassIndex, VariantIndex),
    count: &mut usize,
    rooms: &mut Rooms,
    hosts: &FixedBitSet,
) {
    while *count > 0
        && let Some(found) = engine.find_existing(class, variant, HostIndex::default(), Some(hosts))
    {
        put(engine, class, found, count, rooms);
    }
}

fn put(engine: &mut Engine<'_, '_>, class: ClassIndex, host: HostIndex, count: &mut usize, rooms: &mut Rooms) {
    rooms.fill(host);
    engine.place_on_existing(class, host);
    *count -= 1;
}

fn place_anywhere(
    engine: &mut Engine<'_, '_>,
    (class, variant): (ClassIndex, VariantIndex),
    count: &mut usize,
    rooms: &mut Rooms,
) {
    // Without topology a node that was too full stays too full, so each is asked once.
    let advances = engine.problem.variants[variant].constraints.is_empty();
    let mut first = HostIndex::default();
    while *count > 0 {
        let found = match engine.find_existing(class, variant, first, Some(&rooms.filling)) {
            Some(found) => {
                first = if advances { found } else { HostIndex::default() };
                found
            }
            None => {
                let in_tier = |tier| engine.find_existing(class, variant, HostIndex::default(), Some(tier));
                let Some(found) = rooms.next.iter().find_map(in_tier) else { break };
                first = first.min(found);
                found
            }
        };
        put(engine, class, found, count, rooms);
    }
}

/// Other nodes first, then as many new ones as it takes.
pub fn rehome(
    engine: &mut Engine<'_, '_>,
    candidates: &[&Candidate],
    targets: &IndexVec<HostIndex, Target>,
    inputs: &Inputs<'_>,
) -> Result<Rehoming, NodeObstacle> {
    let mark = engine.mark();
    let demand = move_to_existing(engine, candidates, &|host| targets[host].is_open());
    let mut left = buy(engine, mark, demand, inputs.policy.packing);
    if !left.is_empty() {
        move_without_preferences(engine, &mut left, &|host| targets[host].is_open());
    }
    match left.keys().next() {
        None => Ok(outcome(engine, candidates, mark)),
        Some(class) => Err(NodeObstacle::NoPlace {
            pods: left.values().sum(),
            of: candidates.iter().map(|candidate| candidate.displaced().count()).sum(),
            nearest: explain(engine, *class, inputs.places).into_iter().next().map(Box::new),
        }),
    }
}

fn buy(engine: &mut Engine<'_, '_>, since: Mark, mut demand: Demand, packing: Packing) -> Demand {
    if demand.is_empty() {
        return demand;
    }
    let problem = engine.problem;
    if packing == Packing::Karpenter {
        return karpenter::pack_on_new(engine, since.hosts(), &largest_first(problem, &demand), &demand);
    }
    let levels = demand.keys().map(|class| problem.classes[*class].variants.len()).max().unwrap_or(0);
    let mut budget = WorkBudget::new(problem);
    for level in 0..levels {
        if !demand.is_empty() {
            let markets = Markets::new(problem, level, &demand);
            markets.fill(engine, since.hosts(), &mut demand, HourlyPrice::MAX, &mut budget);
            improve::improve(engine, since, level, &markets, &mut budget);
        }
    }
    demand
}

/// One new node for everything that is left, of these pools, if one costs less than `most` with what it costs beside
/// its instance; says what it costs. Pods give up only what
/// no new node would have.
pub fn one_cheaper_node(
    engine: &mut Engine<'_, '_>,
    demand: &Demand,
    pools: Pools,
    most: HourlyPrice,
) -> Option<HourlyPrice> {
    let since = engine.mark();
    let problem = engine.problem;
    let levels = demand.keys().map(|class| problem.classes[*class].alternatives).max().unwrap_or(0);
    for level in 0..levels {
        let variants: Option<Vec<(ClassIndex, VariantIndex)>> =
            demand.keys().map(|class| Some((*class, variant_to_buy_for(engine, *class, level)?))).collect();
        let mut left = demand.clone();
        improve::in_one_node(engine, &variants?, &mut left, pools, most);
        let cost = improve::cost_since(engine, since);
        if left.is_empty() && cost < most {
            return Some(cost);
        }
        engine.revert(since);
    }
    None
}

/// What pods of a class ask for of a new node: one of the required terms with all preferences, or with as few given up as it takes.
fn variant_to_buy_for(engine: &Engine<'_, '_>, class: ClassIndex, level: usize) -> Option<VariantIndex> {
    let pods = &engine.problem.classes[class];
    let of_level = pods.variants.get(level).filter(|_| level < pods.alternatives);
    of_level.into_iter().chain(&pods.variants).copied().find(|variant| engine.opens(class, *variant))
}

/// Which pod goes where, from what the engine holds since the mark.
pub fn outcome(engine: &Engine<'_, '_>, candidates: &[&Candidate], since: Mark) -> Rehoming {
    let mut by_class: BTreeMap<ClassIndex, Vec<PodIndex>> = BTreeMap::new();
    for pod in candidates.iter().rev().flat_map(|candidate| candidate.displaced().rev()) {
        if let Some(class) = engine.problem.class_of_pod[pod] {
            by_class.entry(class).or_default().push(pod);
        }
    }
    let mut rehoming = Rehoming::default();
    let placed: Vec<(ClassIndex, HostIndex)> = engine.placed_since(since).collect();
    for (class, host) in placed.into_iter().filter(|(_, host)| engine.open_node(*host).is_none()) {
        if let Some(pod) = by_class.get_mut(&class).and_then(Vec::pop) {
            rehoming.placements.push((pod, host));
        }
    }
    let mut lists = LaunchLists::default();
    for host in engine.open_hosts().filter(|host| *host >= since.hosts() && !engine.is_closed(*host)) {
        let mut pods = Vec::new();
        for (class, count) in &engine.host(host).pods {
            let of_class = by_class.entry(*class).or_default();
            pods.extend((0..*count).filter_map(|_| of_class.pop()));
        }
        rehoming.purchases.extend(Purchase::new(engine, host, pods, &mut lists));
    }
    rehoming
}
