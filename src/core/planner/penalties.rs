//! What concentration counts by the penalties of `cutlist.yaml`: from where pods are once a plan is carried out, not from how it was
//! found; and what penalties change about purchases.

use std::collections::BTreeMap;

use crate::inputs::{Inputs, Policy};
use crate::model::HourlyPrice;
use crate::model::words::pods_text;
use crate::plan::{Note, NoteCode, PenaltiesPerHour, Placement, Step, StepKind};
use crate::provision::{self, Provisioning};
use crate::scheduler::{HostIndex, Problem};
use crate::snapshot::pod::is_of_buffer;
use crate::snapshot::{PodIndex, Workload};
use cutlist_api::keys;
use cutlist_api::settings::{ConcentrationPenalty, DEFAULT_PER_NODE_PER_HOUR, Packing, Penalties};

/// Pods that share their fate with more of their workload than is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Concentrated {
    on_nodes: usize,
    in_spot_pools: usize,
}

/// The node of a pod, and the type and zone of the node if it is spot.
#[derive(Clone)]
struct PodPlace<'a> {
    node: &'a str,
    spot: Option<(&'a str, &'a str)>,
}

/// Places by position of the pod in the snapshot.
struct PodPlaces<'a>(BTreeMap<PodIndex, PodPlace<'a>>);

impl<'a> PodPlaces<'a> {
    /// Where pods run that stay or have yet to move: not on nodes that are on their way out.
    fn now(inputs: &'a Inputs<'_>, problem: &'a Problem<'_>) -> Self {
        let positions: BTreeMap<&str, HostIndex> =
            problem.machines.enumerated().map(|(position, machine)| (machine.name, position)).collect();
        let mut homes = Self(BTreeMap::new());
        for (pod, spec) in inputs.snapshot.pods.enumerated().map(|(position, pod)| (position, &pod.spec)) {
            let host = spec.node_name.as_deref().and_then(|name| positions.get(name));
            if let Some(host) = host.filter(|host| !problem.machines[**host].is_being_removed()) {
                homes.move_to_host(pod, *host, problem);
            }
        }
        homes
    }

    fn move_to_host(&mut self, pod: PodIndex, host: HostIndex, problem: &'a Problem<'_>) {
        let machine = &problem.machines[host];
        let label = |key| machine.label(key).unwrap_or_default();
        let is_spot = label(keys::CAPACITY_TYPE) == keys::SPOT;
        let spot = is_spot.then(|| (label(keys::INSTANCE_TYPE), label(keys::ZONE)));
        self.0.insert(pod, PodPlace { node: machine.name, spot });
    }

    /// After what is bought and placed for pending pods. `names` are to be different from all node names.
    fn provisioned(mut self, problem: &'a Problem<'_>, provisioning: &'a Provisioning, names: &'a [String]) -> Self {
        for (purchase, name) in provisioning.purchases.iter().zip(names) {
            let spot = (purchase.capacity_type == keys::SPOT)
                .then_some((purchase.instance_type.as_str(), purchase.zone.as_str()));
            self.0.extend(purchase.pods.iter().map(|pod| (*pod, PodPlace { node: name, spot })));
        }
        for (pod, host) in &provisioning.placements {
            self.move_to_host(*pod, *host, problem);
        }
        self
    }

    /// After all steps of a plan.
    fn planned(
        mut self,
        inputs: &Inputs<'_>,
        problem: &'a Problem<'_>,
        steps: &'a [Step],
        placements: &[Placement],
    ) -> Self {
        let position_of: BTreeMap<String, PodIndex> =
            inputs.snapshot.pods.enumerated().map(|(position, pod)| (pod.key(), position)).collect();
        let positions =
            |pods: &[String]| pods.iter().filter_map(|pod| position_of.get(pod).copied()).collect::<Vec<_>>();
        for step in steps.iter().filter(|step| step.kind == StepKind::Remove) {
            for pod in positions(&step.pods) {
                self.0.remove(&pod);
            }
        }
        for step in steps.iter().filter(|step| step.kind == StepKind::Create) {
            let spot = (step.capacity_type == keys::SPOT).then_some((step.instance_type.as_str(), step.zone.as_str()));
            let home = PodPlace { node: &step.node_claim, spot };
            self.0.extend(positions(&step.pods).into_iter().map(|pod| (pod, home.clone())));
        }
        let hosts: BTreeMap<&str, HostIndex> =
            problem.machines.enumerated().map(|(position, machine)| (machine.name, position)).collect();
        for Placement { pod, node } in placements {
            if let Some((pod, host)) = position_of.get(pod).zip(hosts.get(node.as_str())) {
                self.move_to_host(*pod, *host, problem);
            }
        }
        self
    }

    /// O(pods).
    fn concentrated(&self, inputs: &Inputs<'_>) -> Concentrated {
        let mut replicas: BTreeMap<Workload<'_>, u32> = BTreeMap::new();
        let mut on_nodes: BTreeMap<(Workload<'_>, &str), u32> = BTreeMap::new();
        let mut in_pools: BTreeMap<(Workload<'_>, (&str, &str)), u32> = BTreeMap::new();
        for (position, pod) in inputs.snapshot.pods.enumerated() {
            let counts = !pod.is_terminal() && !pod.is_terminating() && !is_of_buffer(pod);
            let Some(workload) = pod.workload().filter(|_| counts) else { continue };
            *replicas.entry(workload).or_default() += 1;
            let Some(home) = self.0.get(&position) else { continue };
            if let Some(pool) = home.spot {
                *in_pools.entry((workload, pool)).or_default() += 1;
            }
            *on_nodes.entry((workload, home.node)).or_default() += 1;
        }
        let beyond = |penalty: &ConcentrationPenalty, workload: &Workload<'_>, pods: u32| {
            pods.saturating_sub(penalty.free_pods(replicas.get(workload).copied().unwrap_or(0))) as usize
        };
        let penalties = &inputs.policy.penalties;
        Concentrated {
            on_nodes: on_nodes
                .iter()
                .map(|((workload, _), pods)| beyond(&penalties.blast_radius, workload, *pods))
                .sum(),
            in_spot_pools: in_pools
                .iter()
                .map(|((workload, _), pods)| beyond(&penalties.spot_concentration, workload, *pods))
                .sum(),
        }
    }
}

/// `None` where no concentration counts.
pub fn per_hour(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    steps: &[Step],
    placements: &[Placement],
) -> Option<PenaltiesPerHour> {
    let concentration = problem.concentration.as_ref().filter(|_| inputs.policy.packing == Packing::Cheapest)?;
    let concentrated = PodPlaces::now(inputs, problem).planned(inputs, problem, steps, placements).concentrated(inputs);
    Some(PenaltiesPerHour {
        blast_radius: concentration.on_node.per_pod.times(concentrated.on_nodes),
        spot_concentration: concentration.in_spot_pool.per_pod.times(concentrated.in_spot_pools),
    })
}

/// How penalties that somebody set changed what is bought and placed for pending pods, in prices of instances; `None` where they had no
/// say. The amount for each node counts as set where it is not the default.
pub fn note(inputs: &Inputs<'_>, problem: &Problem<'_>, provisioning: &Provisioning) -> Option<Note> {
    if inputs.policy.packing == Packing::Karpenter {
        return is_any_set(&inputs.policy.penalties).then(|| {
            Note::new(
                NoteCode::PenaltiesIgnored,
                "packing: karpenter looks at no prices but those of nodes: spec.penalties are not counted".to_owned(),
            )
        });
    }
    let per_node = sets_amount_per_node(&inputs.policy.penalties) && !provisioning.purchases.is_empty();
    let any_placed = !provisioning.purchases.is_empty() || !provisioning.placements.is_empty();
    if !per_node && (problem.concentration.is_none() || !any_placed) {
        return None;
    }
    let per_node_per_hour = if per_node { 0.0 } else { inputs.policy.penalties.per_node_per_hour };
    let penalties = Penalties { per_node_per_hour, ..Penalties::default() };
    let plain = Inputs { policy: Policy { penalties, ..inputs.policy.clone() }, ..inputs.clone() };
    let plain_problem = Problem::beside(&plain, problem);
    let mut engine = provision::engine(&plain_problem, &plain);
    let without = provision::provision(&mut engine, &plain, plain.policy.packing);
    let (now, otherwise) = match problem.concentration {
        Some(_) => {
            (after_provisioning(inputs, problem, provisioning), after_provisioning(inputs, &plain_problem, &without))
        }
        None => (Concentrated::default(), Concentrated::default()),
    };
    let mut counted = Vec::new();
    if per_node {
        let amount = inputs.policy.price_per_node();
        counted.push(format!("penalties.perNodePerHour {amount} was counted for every new node"));
    }
    counted.extend(texts_of_concentration(inputs, problem, now, otherwise));
    let it = if counted.len() == 1 { "it" } else { "them" };
    let counted = counted.join("; ");
    let bought = |provisioning: &Provisioning| {
        let price: HourlyPrice = provisioning.purchases.iter().map(|purchase| purchase.price).sum();
        (provisioning.purchases.len(), price)
    };
    let ((nodes, price), (nodes_without, price_without)) = (bought(provisioning), bought(&without));
    let text = match price - price_without {
        HourlyPrice::ZERO if nodes == nodes_without && now == otherwise => {
            format!("{counted}; the plan would be the same without {it}")
        }
        HourlyPrice::ZERO => {
            format!("{counted}: {nodes} for {price}, where {nodes_without} for the same price would do")
        }
        more => format!(
            "{counted}: {nodes} for {price}, where {nodes_without} for {price_without} would do; in prices that is {more} more"
        ),
    };
    Some(Note::new(NoteCode::PenaltiesCounted, text))
}

fn is_any_set(penalties: &Penalties) -> bool {
    let concentration = [&penalties.blast_radius, &penalties.spot_concentration];
    sets_amount_per_node(penalties) || concentration.iter().any(|penalty| penalty.per_pod_per_hour > 0.0)
}

/// Whether an amount for each node counts that somebody chose.
fn sets_amount_per_node(penalties: &Penalties) -> bool {
    let is_default = (penalties.per_node_per_hour - DEFAULT_PER_NODE_PER_HOUR).abs() < f64::EPSILON;
    penalties.per_node_per_hour > 0.0 && !is_default
}

fn after_provisioning(inputs: &Inputs<'_>, problem: &Problem<'_>, provisioning: &Provisioning) -> Concentrated {
    // No node has a space in its name.
    let names: Vec<String> = (0..provisioning.purchases.len()).map(|new| format!("new {new}")).collect();
    PodPlaces::now(inputs, problem).provisioned(problem, provisioning, &names).concentrated(inputs)
}

fn texts_of_concentration(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    now: Concentrated,
    without: Concentrated,
) -> Vec<String> {
    let Some(concentration) = &problem.concentration else { return Vec::new() };
    let penalties = &inputs.policy.penalties;
    let text = |name: &str, per_pod: HourlyPrice, penalty: &ConcentrationPenalty, place: &str, pods: (usize, usize)| {
        let share = penalty.max_share_percent;
        let text = format!(
            "penalties.{name} {per_pod} was counted for each pod beyond {share} % of its workload {place} ({} with it, {} without)",
            pods_text(pods.0),
            pods.1
        );
        (per_pod > HourlyPrice::ZERO).then_some(text)
    };
    let on_node = (now.on_nodes, without.on_nodes);
    let in_pool = (now.in_spot_pools, without.in_spot_pools);
    let (radius, spot) = (&penalties.blast_radius, &penalties.spot_concentration);
    let of_nodes = text("blastRadius", concentration.on_node.per_pod, radius, "on one node", on_node);
    let of_spot = text(
        "spotConcentration",
        concentration.in_spot_pool.per_pod,
        spot,
        "on spot nodes of one type and zone",
        in_pool,
    );
    of_nodes.into_iter().chain(of_spot).collect()
}
