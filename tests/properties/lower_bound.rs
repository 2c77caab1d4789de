//! The lower bound of a fleet's price, against a linear programming solver that shares nothing with ours, and against all
//! fleets there are where these can be counted.

use cutlist::api::keys;
use cutlist::api::settings::Packing;
use cutlist::core::planner::decide;
use cutlist::core::programs::dual::{Effort, dual_prices};
use cutlist::core::programs::filling::{Bin, Item};
use cutlist::core::programs::grouping::{Grouping, Size};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{Strategy, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::{Value, json};

use crate::build::Built;

/// Arithmetic of two solvers may differ by this part.
const ROUNDING: f64 = 1e-6;
/// Our bound is at least this part of the linear program's optimum, in every case.
const TIGHT: f64 = 0.995;
/// And this part over the suite.
const TIGHT_ON_AVERAGE: f64 = 0.999;
/// What plans cost over the suite, of the cheapest fleets there are: the price of not trying them all.
const GAP_ON_AVERAGE: f64 = 1.03;

/// Runs the property over cases that are the same each time, and gives its figures.
fn figures<T: std::fmt::Debug>(
    cases: u32,
    inputs: impl Strategy<Value = T>,
    property: impl Fn(T) -> Result<(f64, f64), String>,
) -> (f64, f64) {
    let fixed = Config { cases, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let sum = std::cell::Cell::new((0.0, 0.0));
    let result = runner.run(&inputs, |input| {
        let (one, two) = property(input).map_err(TestCaseError::fail)?;
        sum.set((sum.get().0 + one, sum.get().1 + two));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    sum.get()
}

/// The program of the module documentation, as it stands there. `None` when some pod fits nowhere.
fn optimum(items: &[Item], bins: &[Bin]) -> Option<f64> {
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let mut hosts: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); items.len()];
    for bin in bins {
        let nodes = program.add_var(bin.price, (0.0, f64::INFINITY));
        let placed: Vec<(usize, Variable)> =
            bin.items.iter().map(|(item, _)| (*item, program.add_var(0.0, (0.0, f64::INFINITY)))).collect();
        for ((item, pods), (_, most)) in placed.iter().zip(&bin.items) {
            program.add_constraint([(*pods, 1.0), (nodes, -most)], ComparisonOp::Le, 0.0);
            hosts[*item].push((*pods, 1.0));
        }
        for (dimension, room) in bin.room.iter().enumerate() {
            let mut used: Vec<(Variable, f64)> =
                placed.iter().map(|(item, pods)| (*pods, items[*item].request[dimension] / room.max(1.0))).collect();
            used.push((nodes, -room / room.max(1.0)));
            program.add_constraint(used, ComparisonOp::Le, 0.0);
        }
    }
    for (item, hosts) in items.iter().zip(hosts) {
        program.add_constraint(hosts, ComparisonOp::Ge, item.count);
    }
    Some(program.solve().ok()?.into_solution().ok()?.objective())
}

/// Kinds of pods and offerings as numbers alone.
fn markets() -> impl Strategy<Value = (Vec<Item>, Vec<Bin>)> {
    let request = (1..=64_u32, 1..=64_u32, prop_oneof![3 => 0..=0_u32, 1 => 1..=4_u32]);
    let items = vec((1..300_u32, request), 1..14);
    let shape = (select(vec![32_u32, 64, 128, 256, 512]), select(vec![1_u32, 2, 4]), 0..=8_u32);
    let bins = vec((shape, 50..150_u32, vec(prop_oneof![6 => 64..=64_u32, 1 => 1..=1_u32, 1 => 0..=0_u32], 14)), 1..24);
    (items, bins).prop_map(|(items, bins)| {
        let number = f64::from;
        let items: Vec<Item> = items
            .into_iter()
            .map(|(count, (cpu, memory, device))| Item {
                count: number(count),
                request: vec![number(cpu), number(memory), number(device)],
            })
            .collect();
        let bins = bins.into_iter().map(|((size, ratio, devices), percent, most)| {
            let room = vec![number(size), number(size * ratio), number(devices)];
            let price = (number(size) * (0.6 + 0.2 * number(ratio)) + 8.0 * number(devices)) * number(percent) / 1e4;
            let holds = |(position, item): (usize, &Item)| {
                let copies =
                    |(request, room): (&f64, &f64)| if *request > 0.0 { (room / request).floor() } else { 1e9 };
                let fit = item.request.iter().zip(&room).map(copies).fold(f64::INFINITY, f64::min);
                Some((position, fit.min(number(most[position])))).filter(|(_, most)| *most > 0.0)
            };
            let held = items.iter().enumerate().filter_map(holds).collect();
            Bin { price, room: room.clone(), items: held }
        });
        let bins = bins.collect();
        (items, bins)
    })
}

#[test]
fn prices_from_the_dual_prove_nearly_the_optimum_of_the_linear_program() {
    let (ours, theirs) = figures(120, markets(), |(items, bins)| {
        let Some(optimum) = optimum(&items, &bins) else { return Ok((0.0, 0.0)) };
        // Where nothing is known of the prices: what a pod would cost that takes a whole node of the cheapest kind.
        let alone = |position: usize| {
            let hosts = bins.iter().filter_map(|bin| {
                let (_, most) = bin.items.iter().find(|(item, _)| *item == position)?;
                Some(bin.price / most)
            });
            hosts.fold(f64::INFINITY, f64::min)
        };
        let start: Vec<f64> = (0..items.len()).map(alone).collect();
        let prices = dual_prices(&items, &bins, &start, Effort::exact(400_000_000));
        let bound = prices.bound;
        let of_all: f64 = items.iter().zip(&prices.per_piece).map(|(item, price)| item.count * price).sum();
        if bound > of_all * (1.0 + ROUNDING) {
            return Err(format!("bound {bound} is above {of_all}, which all pods are worth"));
        }
        for bin in &bins {
            let worth = most_worth(&items, bin, &prices.per_piece);
            if worth > bin.price * (1.0 + ROUNDING) {
                return Err(format!("{bin:?} can be filled with pods worth {worth}"));
            }
        }
        if bound < optimum * TIGHT {
            return Err(format!("bound {bound} is {} of the optimum {optimum}", bound / optimum));
        }
        // With whole pods on every node it may be above the linear program.
        Ok((bound.min(optimum), optimum))
    });
    assert!(ours >= theirs * TIGHT_ON_AVERAGE, "{} of the optimum over the suite", ours / theirs);
}

#[test]
fn items_as_small_as_the_smallest_of_their_group_cost_no_more_and_as_large_as_the_largest_no_less() {
    let (grouped, _) = figures(200, markets(), |(items, bins)| {
        let Some(exactly) = optimum(&items, &bins) else { return Ok((0.0, 0.0)) };
        let as_groups = |size: Size| {
            let grouping = Grouping::new(&items, &bins, 8, size)?;
            Some((grouping.groups.len(), optimum(&grouping.groups, &grouping.bins)))
        };
        let Some((groups, at_least)) = as_groups(Size::OfSmallest) else { return Ok((0.0, 0.0)) };
        let at_most = as_groups(Size::OfLargest).and_then(|(_, price)| price).unwrap_or(f64::INFINITY);
        let at_least = at_least.ok_or("what can be hosted can be hosted in groups")?;
        if at_least > exactly * (1.0 + ROUNDING) || at_most < exactly * (1.0 - ROUNDING) {
            return Err(format!("{exactly} is not between {at_least} and {at_most}"));
        }
        Ok((if groups < items.len() { 1.0 } else { 0.0 }, 0.0))
    });
    assert!(grouped > 20.0, "only {grouped} markets had groups");
}

/// The most that one node can be filled with, in whole pods.
fn most_worth(items: &[Item], bin: &Bin, per_pod: &[f64]) -> f64 {
    let mut program = Problem::new(OptimizationDirection::Maximize);
    let pods = bin.items.iter().map(|(item, most)| {
        #[expect(clippy::cast_possible_truncation, reason = "a number of pods on one node")]
        (*item, program.add_integer_var(per_pod[*item], (0, most.min(1e6) as i32)))
    });
    let pods: Vec<(usize, Variable)> = pods.collect();
    for (dimension, room) in bin.room.iter().enumerate() {
        let used: Vec<(Variable, f64)> =
            pods.iter().map(|(item, pods)| (*pods, items[*item].request[dimension])).collect();
        program.add_constraint(used, ComparisonOp::Le, *room);
    }
    program.solve().unwrap().into_solution().unwrap().objective()
}

/// A cluster without nodes: what is sold, and what is asked for.
#[derive(Clone, Debug)]
struct Demand {
    types: Vec<Type>,
    workloads: Vec<Workload>,
}

#[derive(Clone, Debug)]
struct Type {
    cpu: u32,
    gibibytes: u32,
    /// In hundredths of a cent per hour, by zone.
    prices: [u32; 2],
}

#[derive(Clone, Debug)]
struct Workload {
    pods: u32,
    milli_cpu: u32,
    mebibytes: u32,
    /// Must run there.
    zones: Vec<usize>,
    /// Separate terms of node affinity, or one term with a list.
    as_terms: bool,
    /// One on each node.
    alone: bool,
    /// All that are alone keep away from each other, too.
    family: bool,
    host_port: bool,
    /// Over zones, by one at most.
    spread: bool,
}

const ZONES: [&str; 2] = ["zone-a", "zone-b"];

impl Workload {
    /// Whether two pods, of two workloads or of one, can not be on one node.
    fn repels(&self, other: &Self, same: bool) -> bool {
        (same && self.alone)
            || (self.alone && self.family && other.alone && other.family)
            || (self.host_port && other.host_port)
    }
}

fn demands(workloads: std::ops::Range<usize>, pods: std::ops::Range<u32>) -> impl Strategy<Value = Demand> {
    let one_type = (select(vec![1_u32, 2, 4, 8, 16]), select(vec![2_u32, 4, 8]), [80..125_u32, 80..125]);
    let types = vec(one_type, 1..9).prop_map(|types| {
        types
            .into_iter()
            .map(|(cpu, ratio, percents)| Type {
                cpu,
                gibibytes: cpu * ratio,
                prices: percents.map(|percent| cpu * (3 + ratio / 2) * percent),
            })
            .collect()
    });
    let zones = select(vec![vec![], vec![], vec![], vec![0], vec![1], vec![0, 1], vec![1, 0]]);
    let rules = (
        weighted(0.5, 0..1_u8),
        weighted(0.25, 0..1_u8),
        weighted(0.5, 0..1_u8),
        weighted(0.1, 0..1_u8),
        weighted(0.3, 0..1_u8),
    );
    let workload = (
        pods,
        select(vec![100_u32, 250, 500, 900, 1500, 3000]),
        select(vec![128_u32, 500, 1024, 3000, 7000]),
        zones,
        rules,
    );
    let workload =
        workload.prop_map(|(pods, milli_cpu, mebibytes, zones, (as_terms, alone, family, host_port, spread))| {
            Workload {
                pods,
                milli_cpu,
                mebibytes,
                zones,
                as_terms: as_terms.is_some(),
                alone: alone.is_some(),
                family: family.is_some(),
                host_port: host_port.is_some(),
                spread: spread.is_some(),
            }
        });
    (types, vec(workload, workloads)).prop_map(|(types, workloads)| Demand { types, workloads })
}

impl Demand {
    fn built(&self) -> Built {
        let pods = self.workloads.iter().enumerate().flat_map(|(index, workload)| {
            (0..workload.pods).map(move |number| pod(&format!("w{index}-{number}"), index, workload))
        });
        Built::of_objects(
            json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
                "spec": { "template": { "spec": {
                    "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                    "requirements": [],
                } } },
            }),
            json!({
                "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
                "spec": { "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] },
            }),
            self.types.iter().enumerate().map(|(index, it)| instance_type(index, it)).collect(),
            pods.collect(),
        )
    }

    /// The cheapest node in the zone that holds these pods, in hundredths of a cent.
    fn cheapest_node(&self, pods: &[(usize, &Workload)], zone: usize) -> Option<u32> {
        let milli_cpu: u32 = pods.iter().map(|(_, pod)| pod.milli_cpu).sum();
        let mebibytes: u32 = pods.iter().map(|(_, pod)| pod.mebibytes).sum();
        let fits = |it: &&Type| milli_cpu <= it.cpu * 1000 && mebibytes <= it.gibibytes * 1024;
        let is_welcome = pods.iter().all(|(_, pod)| pod.zones.is_empty() || pod.zones.contains(&zone));
        self.types.iter().filter(fits).map(|it| it.prices[zone]).min().filter(|_| is_welcome)
    }

    /// The least that nodes with these pods cost in any zones that spread allows. A bit of `zones` says where a node is.
    fn cheapest_in_zones(&self, nodes: &[Vec<(usize, &Workload)>]) -> Option<u32> {
        let zone_of = |node: usize, zones: usize| zones >> node & 1;
        let is_spread = |zones: &usize| {
            self.workloads.iter().enumerate().filter(|(_, it)| it.spread && it.zones.len() != 1).all(|(index, _)| {
                let in_zone = |zone: usize| {
                    let there = nodes.iter().enumerate().filter(|(node, _)| zone_of(*node, *zones) == zone);
                    there.flat_map(|(_, pods)| pods).filter(|(workload, _)| *workload == index).count()
                };
                in_zone(0).abs_diff(in_zone(1)) <= 1
            })
        };
        let price = |zones: usize| -> Option<u32> {
            nodes.iter().enumerate().map(|(node, pods)| self.cheapest_node(pods, zone_of(node, zones))).sum()
        };
        (0..1_usize << nodes.len()).filter(is_spread).filter_map(price).min()
    }

    /// The price of the cheapest fleet of all, by trying every way to divide the pods among nodes.
    fn cheapest_fleet(&self) -> Option<u32> {
        let pods: Vec<(usize, &Workload)> = self
            .workloads
            .iter()
            .enumerate()
            .flat_map(|(index, workload)| (0..workload.pods).map(move |_| (index, workload)))
            .collect();
        let mut nodes: Vec<Vec<(usize, &Workload)>> = Vec::new();
        self.divide(&pods, &mut nodes)
    }

    fn divide<'d>(
        &'d self,
        pods: &[(usize, &'d Workload)],
        nodes: &mut Vec<Vec<(usize, &'d Workload)>>,
    ) -> Option<u32> {
        let Some((pod, rest)) = pods.split_first() else {
            return self.cheapest_in_zones(nodes);
        };
        let mut best = None;
        for position in 0..=nodes.len() {
            if position == nodes.len() {
                nodes.push(Vec::new());
            }
            if nodes[position].iter().all(|(index, other)| !pod.1.repels(other, pod.0 == *index)) {
                nodes[position].push(*pod);
                best = [best, self.divide(rest, nodes)].into_iter().flatten().min();
                nodes[position].pop();
            }
            if nodes[position].is_empty() {
                nodes.remove(position);
            }
        }
        best
    }

    /// The linear program of this demand: workloads as items, a bin for each type and zone, and a place on the node for
    /// each group of pods of which only one can be there.
    fn program(&self) -> (Vec<Item>, Vec<Bin>) {
        let one_of = |holds: bool| if holds { 1.0 } else { 0.0 };
        let items: Vec<Item> = self
            .workloads
            .iter()
            .map(|it| Item {
                count: f64::from(it.pods),
                request: vec![
                    f64::from(it.milli_cpu),
                    f64::from(it.mebibytes),
                    1.0,
                    one_of(it.alone && it.family),
                    one_of(it.host_port),
                ],
            })
            .collect();
        let bins = self.types.iter().flat_map(|it| (0..2).map(move |zone| (it, zone))).map(|(it, zone)| {
            let room = vec![f64::from(it.cpu * 1000), f64::from(it.gibibytes * 1024), f64::from(PODS), 1.0, 1.0];
            let held = self.workloads.iter().enumerate().filter_map(|(position, workload)| {
                let fit = (it.cpu * 1000 / workload.milli_cpu).min(it.gibibytes * 1024 / workload.mebibytes);
                let most = if workload.alone || workload.host_port { fit.min(1) } else { fit.min(workload.pods) };
                let welcome = workload.zones.is_empty() || workload.zones.contains(&zone);
                (welcome && most > 0).then_some((position, f64::from(most)))
            });
            Bin { price: dollars(it.prices[zone]), items: held.collect(), room }
        });
        let bins = bins.collect();
        (items, bins)
    }
}

const PODS: u32 = 58;

fn dollars(hundredths_of_a_cent: u32) -> f64 {
    f64::from(hundredths_of_a_cent) / 10_000.0
}

fn instance_type(index: usize, it: &Type) -> Value {
    let name = format!("m{index}.{}x", it.cpu);
    let offering =
        |zone: usize| json!({ "zone": ZONES[zone], "capacityType": "on-demand", "price": dollars(it.prices[zone]) });
    json!({
        "name": name,
        "requirements": {
            keys::INSTANCE_TYPE: [name], keys::ARCHITECTURE: ["amd64"], keys::OPERATING_SYSTEM: ["linux"],
            keys::ZONE: ZONES, keys::CAPACITY_TYPE: ["on-demand"],
        },
        "capacity": { "cpu": it.cpu.to_string(), "memory": format!("{}Gi", it.gibibytes), "pods": PODS.to_string() },
        "overhead": {}, "offerings": [offering(0), offering(1)],
    })
}

fn pod(name: &str, index: usize, workload: &Workload) -> Value {
    let term =
        |zones: Vec<&str>| json!({ "matchExpressions": [{ "key": keys::ZONE, "operator": "In", "values": zones }] });
    let names: Vec<&str> = workload.zones.iter().map(|zone| ZONES[*zone]).collect();
    let mut affinity = json!({});
    if !names.is_empty() {
        let terms: Vec<Value> =
            if workload.as_terms { names.iter().map(|name| term(vec![*name])).collect() } else { vec![term(names)] };
        affinity["nodeAffinity"] =
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
    }
    if workload.alone {
        let key = if workload.family { "family" } else { "workload" };
        let value = if workload.family { "hermits".to_owned() } else { index.to_string() };
        affinity["podAntiAffinity"] = json!({ "requiredDuringSchedulingIgnoredDuringExecution": [
            { "topologyKey": keys::HOSTNAME, "labelSelector": { "matchLabels": { key: value } } }
        ] });
    }
    let family = if workload.alone && workload.family { "hermits" } else { "none" };
    json!({
        "metadata": { "name": name, "namespace": "default", "labels": { "workload": index.to_string(), "family": family } },
        "spec": {
            "affinity": affinity,
            "topologySpreadConstraints": if workload.spread { json!([spread(index)]) } else { json!([]) },
            "containers": [{
                "name": "main",
                "resources": { "requests": {
                    "cpu": format!("{}m", workload.milli_cpu), "memory": format!("{}Mi", workload.mebibytes),
                } },
                "ports": if workload.host_port { json!([{ "containerPort": 80, "hostPort": 80 }]) } else { json!([]) },
            }],
        },
        "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
    })
}

fn spread(index: usize) -> Value {
    json!({
        "maxSkew": 1, "topologyKey": keys::ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "workload": index.to_string() } },
    })
}

/// Price of the plan and its lower bound; `None` when nothing is bought or something is left pending.
fn planned(demand: &Demand) -> Option<(f64, f64)> {
    let mut built = demand.built();
    // The bound is on what instances cost, so nothing else is to decide.
    built.penalties.per_node_per_hour = 0.0;
    let plan = decide(&built.inputs(Packing::Cheapest));
    let summary = plan.summary;
    let bound = summary.lower_bound_price_per_hour.filter(|_| summary.pods_pending == 0)?;
    Some((summary.price_per_hour_after.dollars(), bound.dollars()))
}

#[test]
fn the_bound_is_below_the_cheapest_fleet_there_is_and_the_plan_is_near_it() {
    let (plans, fleets) = figures(150, demands(1..4, 1..3), |demand| {
        let (Some((price, bound)), Some(cheapest)) = (planned(&demand), demand.cheapest_fleet()) else {
            return Ok((0.0, 0.0));
        };
        let cheapest = dollars(cheapest);
        if bound > cheapest * (1.0 + ROUNDING) {
            return Err(format!("bound {bound} is above the cheapest fleet {cheapest}"));
        }
        if price < cheapest * (1.0 - ROUNDING) {
            return Err(format!("the plan costs {price}, less than the cheapest fleet {cheapest}"));
        }
        Ok((price, cheapest))
    });
    assert!(plans <= fleets * GAP_ON_AVERAGE, "plans cost {} of the cheapest fleets", plans / fleets);
}

#[test]
fn the_bound_of_a_plan_is_nearly_the_optimum_of_its_linear_program() {
    let (ours, theirs) = figures(40, demands(2..12, 1..60), |demand| {
        let (items, bins) = demand.program();
        let (Some((price, bound)), Some(optimum)) = (planned(&demand), optimum(&items, &bins)) else {
            return Ok((0.0, 0.0));
        };
        if price < optimum * (1.0 - ROUNDING) || bound > price * (1.0 + ROUNDING) {
            return Err(format!("bound {bound}, linear program {optimum}, plan {price}"));
        }
        if bound < optimum * TIGHT {
            return Err(format!("bound {bound} is {} of the optimum {optimum}", bound / optimum));
        }
        // One class alone is bounded by whole nodes, which may be above the linear program.
        Ok((bound.min(optimum), optimum))
    });
    assert!(ours >= theirs * TIGHT_ON_AVERAGE, "{} of the optimum over the suite", ours / theirs);
}
