//! Random worlds as small descriptions: numbers and choices, so that a failing one shrinks to what matters. Every index
//! is taken modulo the number of things there are.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

#[derive(Clone, Debug)]
pub struct World {
    pub seed: u64,
    pub types: Vec<Type>,
    pub pools: Vec<Pool>,
    pub nodes: Vec<Node>,
    pub unmanaged_nodes: usize,
    pub workloads: Vec<Workload>,
    pub daemons: Vec<Daemon>,
    pub overlays: Vec<Overlay>,
    /// A DisruptionBudget over everything.
    pub cluster_budget: Option<ClusterBudget>,
    pub zones_with_subnet: Option<usize>,
    pub penalties: Option<Penalties>,
}

#[derive(Clone, Debug)]
pub struct ClusterBudget {
    pub nodes: u8,
    pub cents_per_hour: Option<u8>,
    /// Whether it denies, and the hour from which it does so, or allows, for six hours.
    pub window: Option<(bool, u8)>,
}

/// A NodeOverlay over the offerings that have all of these.
#[derive(Clone, Debug)]
pub struct Overlay {
    pub pool: Option<usize>,
    pub generation: Option<u8>,
    pub zone: Option<usize>,
    pub spot: Option<bool>,
    pub weight: Option<u8>,
    pub effect: Effect,
}

#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// Cents per hour.
    Price(u8),
    Percent(i8),
    /// Thousandths of a dollar per hour.
    Thousandths(i8),
    Licences(u8),
}

/// In thousandths of a dollar per hour.
#[derive(Clone, Debug)]
pub struct Penalties {
    pub per_node: u8,
    pub blast_radius: u8,
    pub spot_concentration: u8,
    pub share_percent: u8,
}

#[derive(Clone, Debug)]
pub struct Type {
    pub cpu_power: u32,
    pub gibibytes_per_cpu: u8,
    pub arm: bool,
    pub generation: u8,
    pub price_percent: u8,
    /// Of on-demand, by zone; 0: not offered as spot.
    pub spot_percent: [u8; 3],
    /// One bit for each zone it is not available in.
    pub unavailable: u8,
    pub gpu: bool,
}

#[derive(Clone, Debug)]
pub struct Pool {
    pub capacity: CapacityTypes,
    pub arm: Option<bool>,
    pub minimum_generation: Option<u8>,
    pub zones: Option<u8>,
    pub tainted: bool,
    pub team: Option<u8>,
    pub weight: Option<u8>,
    pub cpu_limit: Option<u16>,
    pub node_limit: Option<u8>,
    pub only_empty: bool,
    pub consolidate_after: ConsolidateAfter,
    pub budget: Budget,
    pub minimum_types: Option<u8>,
    pub max_pods: Option<u8>,
    /// Static: it has this many nodes, whatever pods there are.
    pub replicas: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub enum CapacityTypes {
    OnDemand,
    Spot,
    Both,
}

#[derive(Clone, Copy, Debug)]
pub enum ConsolidateAfter {
    AtOnce,
    Minutes(u8),
    Never,
}

#[derive(Clone, Debug)]
pub enum Budget {
    Percent(u8),
    Count(u8),
    /// None for this reason, and a tenth for the others.
    NotWhenEmpty,
    /// None in office hours.
    Window(u8),
}

#[derive(Clone, Debug)]
pub struct Node {
    pub pool: usize,
    pub instance_type: usize,
    pub zone: usize,
    pub spot: bool,
    pub state: NodeState,
    pub minutes_since_pod_event: u8,
    /// Volumes that its driver can attach; `None` where the driver does not say.
    pub volumes_max: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    Ready,
    NotReady,
    /// Launched and registered, with its startup taint.
    Starting,
    Deleting,
    DoNotDisrupt,
    Expired,
}

#[derive(Clone, Debug)]
pub struct Workload {
    pub running: u8,
    pub pending: u8,
    pub cpu: usize,
    pub memory: usize,
    pub other_namespace: bool,
    pub constraints: Vec<Constraint>,
    pub do_not_disrupt: bool,
    /// `disruptionsAllowed` of its PodDisruptionBudget.
    pub disruption_budget: Option<u8>,
    pub priority: Option<i32>,
    /// Where the search for a node for its running pods begins.
    pub first_node: usize,
}

#[derive(Clone, Debug)]
pub enum Constraint {
    ZoneSpread {
        max_skew: u8,
        min_domains: Option<u8>,
        honours_taints: bool,
    },
    HostnameSpread {
        max_skew: u8,
    },
    CapacityTypeSpread,
    SoftZoneSpread,
    SpreadAmong {
        workload: usize,
    },
    AntiAffinityByHostname,
    AntiAffinityByZone,
    AffinityByZone,
    AffinityByHostname,
    AffinityTo {
        workload: usize,
        by_zone: bool,
    },
    AntiAffinityTo {
        workload: usize,
        by_zone: bool,
    },
    PreferredZone {
        zone: usize,
    },
    Zone {
        zone: usize,
    },
    EitherZone {
        one: usize,
        two: usize,
    },
    Architecture {
        arm: bool,
    },
    CapacityType {
        spot: bool,
    },
    Team {
        team: u8,
    },
    NotInstanceType {
        instance_type: usize,
    },
    GenerationAbove {
        generation: u8,
    },
    TolerateEverything,
    TolerateTeamTaint,
    HostPort {
        port: u8,
    },
    VolumeInZone {
        zone: usize,
    },
    VolumeToCome {
        zone: Option<usize>,
    },
    /// One claim for all replicas, or for one of them.
    SharedVolume {
        for_one_pod: bool,
    },
    /// A disk of a node, which may not be there.
    LocalVolume {
        node: usize,
    },
    /// Init containers: one that goes on running, and one before or after it.
    Sidecar {
        cpu: usize,
        setup_cpu: usize,
        is_first: bool,
    },
    PodLevelResources {
        cpu: usize,
        is_limit: bool,
    },
    /// What only an overlay gives.
    Licence,
    Gpu,
    SchedulingGate,
}

#[derive(Clone, Debug)]
pub struct Daemon {
    pub cpu: usize,
    pub arm: Option<bool>,
    pub tolerates: bool,
    pub host_port: Option<u8>,
}

pub fn worlds() -> impl Strategy<Value = World> {
    let cluster = (vec(types(), 5..60), vec(pools(), 1..4), vec(nodes(), 0..10), 0..3_usize);
    let content =
        (vec(workloads(), 1..8), vec(daemons(), 0..3), prop_oneof![2 => Just(Vec::new()), 1 => vec(overlays(), 1..4)]);
    let rest = (any::<u64>(), weighted(0.3, cluster_budgets()), weighted(0.2, 1..3_usize), weighted(0.3, penalties()));
    (cluster, content, rest).prop_map(|(cluster, (workloads, daemons, overlays), rest)| {
        let (types, pools, nodes, unmanaged_nodes) = cluster;
        let (seed, cluster_budget, zones_with_subnet, penalties) = rest;
        World {
            seed,
            types,
            pools,
            nodes,
            unmanaged_nodes,
            workloads,
            daemons,
            overlays,
            cluster_budget,
            zones_with_subnet,
            penalties,
        }
    })
}

fn cluster_budgets() -> impl Strategy<Value = ClusterBudget> {
    (0..4_u8, weighted(0.5, 0..200_u8), weighted(0.3, (any::<bool>(), 0..24_u8)))
        .prop_map(|(nodes, cents_per_hour, window)| ClusterBudget { nodes, cents_per_hour, window })
}

fn overlays() -> impl Strategy<Value = Overlay> {
    let effect = prop_oneof![
        (0..200_u8).prop_map(Effect::Price),
        (-100..120_i8).prop_map(Effect::Percent),
        (-100..120_i8).prop_map(Effect::Thousandths),
        (0..4_u8).prop_map(Effect::Licences),
    ];
    let what = (weighted(0.2, 0..4_usize), weighted(0.3, 4..8_u8), weighted(0.3, 0..3_usize));
    (what, weighted(0.3, any::<bool>()), weighted(0.5, 1..100_u8), effect).prop_map(
        |((pool, generation, zone), spot, weight, effect)| Overlay { pool, generation, zone, spot, weight, effect },
    )
}

fn penalties() -> impl Strategy<Value = Penalties> {
    let amount = || prop_oneof![Just(0_u8), 1..100_u8];
    (amount(), amount(), amount(), 1..101_u8).prop_map(|(per_node, blast_radius, spot_concentration, share_percent)| {
        Penalties { per_node, blast_radius, spot_concentration, share_percent }
    })
}

fn types() -> impl Strategy<Value = Type> {
    let shape = (0..6_u32, prop_oneof![Just(2_u8), Just(4), Just(8)], weighted_bool(0.3), 4..8_u8);
    let market = (80..125_u8, [0..80_u8, 0..80, 0..80], prop_oneof![4 => Just(0_u8), 1 => 0..8_u8]);
    (shape, market, weighted_bool(0.05)).prop_map(|(shape, market, gpu)| {
        let (cpu_power, gibibytes_per_cpu, arm, generation) = shape;
        let (price_percent, spot_percent, unavailable) = market;
        Type { cpu_power, gibibytes_per_cpu, arm, generation, price_percent, spot_percent, unavailable, gpu }
    })
}

fn pools() -> impl Strategy<Value = Pool> {
    let capacity = prop_oneof![Just(CapacityTypes::OnDemand), Just(CapacityTypes::Spot), Just(CapacityTypes::Both)];
    let after = prop_oneof![
        Just(ConsolidateAfter::AtOnce),
        (1..60_u8).prop_map(ConsolidateAfter::Minutes),
        Just(ConsolidateAfter::Never)
    ];
    let budget = prop_oneof![
        3 => Just(Budget::Percent(100)),
        1 => (0..100_u8).prop_map(Budget::Percent),
        1 => (0..5_u8).prop_map(Budget::Count),
        1 => Just(Budget::NotWhenEmpty),
        1 => (0..24_u8).prop_map(Budget::Window),
    ];
    let what = (capacity, weighted(0.3, any::<bool>()), weighted(0.3, 4..7_u8), weighted(0.2, 1..7_u8));
    let how = (weighted_bool(0.2), weighted(0.3, 0..2_u8), weighted(0.3, 1..100_u8));
    let limits = (weighted(0.3, 0..100_u16), weighted(0.2, 0..8_u8), weighted(0.1, 1..4_u8), weighted(0.2, 1..20_u8));
    let disruption = (weighted_bool(0.2), after, budget, weighted(0.1, 0..5_u8));
    (what, how, limits, disruption).prop_map(|(what, how, limits, disruption)| {
        let (capacity, arm, minimum_generation, zones) = what;
        let (tainted, team, weight) = how;
        let (cpu_limit, node_limit, minimum_types, max_pods) = limits;
        let (only_empty, consolidate_after, budget, replicas) = disruption;
        Pool {
            capacity,
            arm,
            minimum_generation,
            zones,
            tainted,
            team,
            weight,
            cpu_limit,
            node_limit,
            only_empty,
            consolidate_after,
            budget,
            minimum_types,
            max_pods,
            replicas,
        }
    })
}

fn nodes() -> impl Strategy<Value = Node> {
    let state = prop_oneof![
        12 => Just(NodeState::Ready),
        1 => Just(NodeState::NotReady),
        1 => Just(NodeState::Starting),
        1 => Just(NodeState::Deleting),
        1 => Just(NodeState::DoNotDisrupt),
        1 => Just(NodeState::Expired),
    ];
    (0..4_usize, 0..60_usize, 0..3_usize, any::<bool>(), state, 0..120_u8, weighted(0.3, 0..4_u8)).prop_map(
        |(pool, instance_type, zone, spot, state, minutes_since_pod_event, volumes_max)| Node {
            pool,
            instance_type,
            zone,
            spot,
            state,
            minutes_since_pod_event,
            volumes_max,
        },
    )
}

fn workloads() -> impl Strategy<Value = Workload> {
    let size = (0..6_u8, prop_oneof![1 => Just(0_u8), 2 => 0..8_u8], 0..7_usize, 0..6_usize);
    let care = (weighted_bool(0.1), weighted(0.3, 0..2_u8), weighted(0.2, -100..1000_i32));
    (size, weighted_bool(0.2), vec(constraints(), 0..3), care, 0..12_usize).prop_map(
        |(size, other_namespace, constraints, care, first_node)| {
            let (running, pending, cpu, memory) = size;
            let (do_not_disrupt, disruption_budget, priority) = care;
            Workload {
                running,
                pending,
                cpu,
                memory,
                other_namespace,
                constraints,
                do_not_disrupt,
                disruption_budget,
                priority,
                first_node,
            }
        },
    )
}

fn constraints() -> BoxedStrategy<Constraint> {
    prop_oneof![
        topology(),
        place(),
        prop_oneof![
            Just(Constraint::TolerateEverything),
            Just(Constraint::TolerateTeamTaint),
            (0..3_u8).prop_map(|port| Constraint::HostPort { port }),
            (0..3_usize).prop_map(|zone| Constraint::VolumeInZone { zone }),
            weighted(0.5, 0..3_usize).prop_map(|zone| Constraint::VolumeToCome { zone }),
            any::<bool>().prop_map(|for_one_pod| Constraint::SharedVolume { for_one_pod }),
            (0..12_usize).prop_map(|node| Constraint::LocalVolume { node }),
            (0..6_usize, 0..6_usize, any::<bool>()).prop_map(|(cpu, setup_cpu, is_first)| Constraint::Sidecar {
                cpu,
                setup_cpu,
                is_first
            }),
            (0..7_usize, any::<bool>()).prop_map(|(cpu, is_limit)| Constraint::PodLevelResources { cpu, is_limit }),
            Just(Constraint::Licence),
            Just(Constraint::Gpu),
            Just(Constraint::SchedulingGate),
        ],
    ]
    .boxed()
}

fn topology() -> BoxedStrategy<Constraint> {
    prop_oneof![
        (1..3_u8, weighted(0.2, 1..5_u8), weighted_bool(0.2)).prop_map(|(max_skew, min_domains, honours_taints)| {
            Constraint::ZoneSpread { max_skew, min_domains, honours_taints }
        }),
        (1..3_u8).prop_map(|max_skew| Constraint::HostnameSpread { max_skew }),
        Just(Constraint::CapacityTypeSpread),
        Just(Constraint::SoftZoneSpread),
        (0..8_usize).prop_map(|workload| Constraint::SpreadAmong { workload }),
        Just(Constraint::AntiAffinityByHostname),
        Just(Constraint::AntiAffinityByZone),
        Just(Constraint::AffinityByZone),
        Just(Constraint::AffinityByHostname),
        (0..8_usize, any::<bool>()).prop_map(|(workload, by_zone)| Constraint::AffinityTo { workload, by_zone }),
        (0..8_usize, any::<bool>()).prop_map(|(workload, by_zone)| Constraint::AntiAffinityTo { workload, by_zone }),
    ]
    .boxed()
}

fn place() -> BoxedStrategy<Constraint> {
    prop_oneof![
        (0..3_usize).prop_map(|zone| Constraint::PreferredZone { zone }),
        (0..3_usize).prop_map(|zone| Constraint::Zone { zone }),
        (0..3_usize, 0..3_usize).prop_map(|(one, two)| Constraint::EitherZone { one, two }),
        any::<bool>().prop_map(|arm| Constraint::Architecture { arm }),
        any::<bool>().prop_map(|spot| Constraint::CapacityType { spot }),
        (0..2_u8).prop_map(|team| Constraint::Team { team }),
        (0..60_usize).prop_map(|instance_type| Constraint::NotInstanceType { instance_type }),
        (4..8_u8).prop_map(|generation| Constraint::GenerationAbove { generation }),
    ]
    .boxed()
}

fn daemons() -> impl Strategy<Value = Daemon> {
    (0..3_usize, weighted(0.2, any::<bool>()), any::<bool>(), weighted(0.1, 0..3_u8))
        .prop_map(|(cpu, arm, tolerates, host_port)| Daemon { cpu, arm, tolerates, host_port })
}

fn weighted_bool(probability: f64) -> impl Strategy<Value = bool> {
    proptest::bool::weighted(probability)
}
