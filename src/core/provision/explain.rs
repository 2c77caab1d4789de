//! Why pods stay pending: what keeps them from each pool, nearest first, and from the nodes that exist.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::values::Values;
use crate::model::requirements::normalized;
use crate::model::suggest::{self, Hint};
use crate::model::{Requirement, Requirements};
use crate::offer::named_types;
use crate::plan::{DefinitionPlace, DefinitionPlaces, PendingReason, ReasonCode, field_of};
use crate::scheduler::class::VariantIndex;
use crate::scheduler::daemons::Daemon;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::template::{Template, TemplateIndex};
use crate::scheduler::vectors::ATTACHABLE_VOLUMES;
use crate::scheduler::volumes::{NODE_NAME, SELECTED_NODE};
use crate::scheduler::{ClassIndex, Engine, HostIndex, Refusal};
use crate::snapshot::PodIndex;
use cutlist_api::keys;
use cutlist_api::node_pool::Operator;

use super::amounts::amount;
use super::distances::{Distance, distances, is_used_up};
use super::existing_refusal::{ExistingRefusal, in_short};
use super::passing::{Passing, passing};
use super::unpriced;

/// So many DaemonSets are named.
const DAEMONS_NAMED_MAX: usize = 3;

/// The reasons why no pool takes one more pod of the class, nearest first. What would help: [`super::advice`].
pub fn explain(engine: &Engine<'_, '_>, class: ClassIndex, places: &DefinitionPlaces) -> Vec<PendingReason> {
    let distances = distances(engine, class);
    let told = distances.iter().filter(|distance| !is_told_by_reservation(distance, &distances));
    let mut reasons: Vec<PendingReason> = told.map(|distance| reason(engine, class, distance, places)).collect();
    let templates = &engine.problem.templates;
    let left_out = engine.problem.offer.left_out();
    reasons.extend(left_out.iter().map(|it| PendingReason::new(&it.node_pool, it.code, it.text.clone())));
    if templates.iter().all(Template::is_static) && (left_out.is_empty() || !templates.is_empty()) {
        let text = match templates.is_empty() {
            true => "there is no NodePool that nodes could be created from".to_owned(),
            false => "every NodePool is static (spec.replicas): no node is created for a pod".to_owned(),
        };
        reasons.push(PendingReason::new("", ReasonCode::NoNodePool, text));
        return reasons;
    }
    reasons.extend(static_pools_that_would_do(engine, class).map(|pool| {
        let text = "it is static (spec.replicas): no node is created for a pod".to_owned();
        PendingReason::new(pool, ReasonCode::NoNodePool, text)
    }));
    reasons
}

/// Whether pods lack nothing in the pool but a reservation, of which another reason says that it is used up.
fn is_told_by_reservation(distance: &Distance<'_>, all: &[Distance<'_>]) -> bool {
    let is_of_reservation = |refusal: &Refusal| match refusal {
        Refusal::Requirement { key } => {
            [keys::CAPACITY_TYPE, keys::CAPACITY_RESERVATION_ID, keys::CAPACITY_RESERVATION_TYPE]
                .contains(&key.as_str())
        }
        _ => false,
    };
    distance.obstacles.iter().all(is_of_reservation)
        && all.iter().any(|other| other.pool == distance.pool && other.obstacles.iter().all(is_used_up))
}

fn reason(
    engine: &Engine<'_, '_>,
    class: ClassIndex,
    distance: &Distance<'_>,
    places: &DefinitionPlaces,
) -> PendingReason {
    let text = |refusal: &Refusal| {
        let text = describe(engine, class, distance.pool, refusal);
        match passing(engine, class, distance.pool, refusal) {
            Some(passing @ Passing::NodesLeave { .. }) => format!("{text}; {passing}"),
            Some(passing @ Passing::NeighboursCome { .. }) => passing.to_string(),
            None => text,
        }
    };
    let mut texts: Vec<String> = distance.obstacles.iter().map(text).collect();
    let template = template_of(engine, distance.pool);
    let unpriced = template.map(|it| unpriced::would_do(engine, class, it, &distance.obstacles)).unwrap_or_default();
    texts.extend((!unpriced.is_empty()).then(|| for_want_of_a_price(&unpriced)));
    let code = distance.obstacles.first().map_or(ReasonCode::NoOffering, Refusal::code);
    let nothing = match distance.obstacles.contains(&Refusal::EmptyPool) {
        true => template.and_then(|template| template.nothing_offered.as_deref()),
        false => None,
    };
    let names = || unpriced.iter().map(|name| (*name).to_owned()).collect();
    let kind_of = |refusal: &Refusal| {
        let form = match refusal {
            Refusal::Requirement { key } => Some(describe_requirement(engine, class, distance.pool, key).0),
            _ => None,
        };
        refusal.kind_in_words().into_iter().chain(form.map(str::to_owned))
    };
    let mut kind: Vec<String> = distance.obstacles.iter().flat_map(kind_of).collect();
    kind.extend((!unpriced.is_empty()).then(|| "WithoutPrice".to_owned()));
    PendingReason {
        kind,
        unmatched: nothing.and_then(|nothing| nothing.unmatched.clone()),
        definition: distance.obstacles.first().and_then(|first| definition(engine, distance.pool, first, places)),
        without_price: nothing.map_or_else(names, |nothing| nothing.without_price.clone()),
        ..PendingReason::new(distance.pool, code, texts.join("; "))
    }
}

/// Static pools to whose nodes nothing keeps the pods from going but their number.
fn static_pools_that_would_do<'p>(engine: &Engine<'p, '_>, class: ClassIndex) -> impl Iterator<Item = &'p str> {
    let problem = engine.problem;
    let variant = problem.classes[class].variants.last().copied();
    let pools = problem.templates.enumerated().filter(|(_, template)| template.is_static() && !template.is_reserved());
    let would_do =
        move |template: TemplateIndex| variant.is_some_and(|it| problem.fit_of_template(it, template).is_ok());
    pools.filter(move |(position, _)| would_do(*position)).map(|(_, template)| template.name.as_str())
}

fn for_want_of_a_price(names: &[&str]) -> String {
    let (has, what) = match names {
        [_] => ("has", "what it costs is not known, so it is not chosen"),
        _ => ("have", "what they cost is not known, so they are not chosen"),
    };
    format!("only {} would do, which {has} no price in the catalog: {what}", named_types(names))
}

/// Where the pool says what stands in the way. What the pod asks for is in no definition.
fn definition(
    engine: &Engine<'_, '_>,
    pool: &str,
    refusal: &Refusal,
    places: &DefinitionPlaces,
) -> Option<DefinitionPlace> {
    let pointer = match refusal {
        Refusal::Limit { scope: LimitScope::NodePool, resource, .. } => field_of("/spec/limits", resource),
        Refusal::EmptyPool if template_of(engine, pool)?.nothing_offered.as_ref()?.unmatched.is_some() => {
            "/spec/template/spec/requirements".to_owned()
        }
        _ => return None,
    };
    places.of_pool(pool, &pointer)
}

/// Why the nodes that exist do not take one more pod of the class: the reason that most of them give. Where there are nodes that the pod may
/// run on, by their labels and taints, those alone are asked. `None` where nothing is known of the class.
pub fn why_not_existing(engine: &Engine<'_, '_>, class: ClassIndex) -> Option<ExistingRefusal> {
    let variant = engine.problem.classes[class].variants.first().copied()?;
    if let Some(key) = spread_that_kept_away(engine, class, variant) {
        return Some(ExistingRefusal::Spread { key: key.to_owned() });
    }
    let mut counts: BTreeMap<Refusal, usize> = BTreeMap::new();
    for (_, refusal) in refusals_of_existing(engine, class, variant) {
        *counts.entry(refusal.kind()).or_default() += 1;
    }
    let is_allowed = |kind: &Refusal| !matches!(kind, Refusal::Requirement { .. } | Refusal::Taint(_));
    let (allowed, others): (Vec<_>, Vec<_>) = counts.into_iter().partition(|(kind, _)| is_allowed(kind));
    let of_allowed = !allowed.is_empty() && !others.is_empty();
    let asked = if allowed.is_empty() { others } else { allowed };
    let most = asked.into_iter().max_by_key(|(kind, count)| (*count, Reverse(in_short(kind, "node"))));
    Some(most.map_or(ExistingRefusal::NoNode, |(refusal, _)| ExistingRefusal::Most { refusal, of_allowed }))
}

/// The label of a spread of the class, where nodes that exist would take one more of it by now: they had room before, too, and only with
/// the nodes that are bought the spread lets it in there.
fn spread_that_kept_away<'p>(engine: &Engine<'p, '_>, class: ClassIndex, variant: VariantIndex) -> Option<&'p str> {
    let problem = engine.problem;
    let mut spreads = problem.classes[class].spreads.iter();
    let key = spreads.next().map(|group| problem.domains.name(problem.groups[*group].key))?;
    let takes = |host: &HostIndex| !engine.is_closed(*host) && engine.fits_existing(class, variant, *host);
    engine.existing_hosts().any(|host| takes(&host)).then_some(key)
}

fn refusals_of_existing<'e>(
    engine: &'e Engine<'_, '_>,
    class: ClassIndex,
    variant: VariantIndex,
) -> impl Iterator<Item = (HostIndex, Refusal)> + 'e {
    let staying = engine.existing_hosts().filter(|host| !engine.is_closed(*host));
    staying.filter_map(move |host| Some((host, engine.refusal_of_existing(class, variant, host)?)))
}

/// Nodes that exist and refuse a pod for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingNodes {
    pub nodes: usize,
    /// The first of them by name.
    pub example: String,
    pub code: ReasonCode,
    pub text: String,
}

/// Why the nodes that exist do not take one more pod of the class, each reason with its nodes; what most of them say comes
/// first. O(nodes).
pub fn existing_nodes(engine: &Engine<'_, '_>, class: ClassIndex) -> Vec<ExistingNodes> {
    let problem = engine.problem;
    let Some(variant) = problem.classes[class].variants.last().copied() else { return Vec::new() };
    // By what it is about: nodes, of resources the most that one of them has free, and the first refusal.
    let mut kinds: BTreeMap<Refusal, (Vec<&str>, i64, Refusal)> = BTreeMap::new();
    let closed = engine.existing_hosts().filter(|host| engine.is_closed(*host));
    let closed = closed.map(|host| problem.machines[problem.nodes[host].machine].name);
    let (doubled, leaving): (Vec<&str>, Vec<&str>) = closed.partition(|name| problem.snapshot.doubts.is_doubled(name));
    for (host, refusal) in refusals_of_existing(engine, class, variant) {
        let free = if let Refusal::Resource { available, .. } = &refusal { *available } else { 0 };
        let entry = kinds.entry(refusal.kind()).or_insert_with(|| (Vec::new(), free, refusal));
        entry.0.push(problem.machines[host].name);
        entry.1 = entry.1.max(free);
    }
    let mut found: Vec<ExistingNodes> = Vec::new();
    for (names, free, refusal) in kinds.into_values() {
        found.push(group_of_nodes(names, refusal.code(), of_node(&refusal, free)));
    }
    if !leaving.is_empty() {
        found.push(group_of_nodes(leaving, ReasonCode::BeingDeleted, "on its way out".to_owned()));
    }
    if !doubled.is_empty() {
        let text = "another one has its provider ID".to_owned();
        found.push(group_of_nodes(doubled, ReasonCode::ProviderIdShared, text));
    }
    found.sort_by(|one, two| two.nodes.cmp(&one.nodes).then_with(|| one.text.cmp(&two.text)));
    found
}

fn group_of_nodes(names: Vec<&str>, code: ReasonCode, text: String) -> ExistingNodes {
    let example = names.iter().min().map(|name| (*name).to_owned()).unwrap_or_default();
    ExistingNodes { nodes: names.len(), example, code, text }
}

/// What a node says; `free` is the most of a resource that is short.
fn of_node(refusal: &Refusal, free: i64) -> String {
    match refusal {
        Refusal::Resource { name, requested, .. } => {
            format!("not enough {name}: {} requested, at most {} free", amount(name, *requested), amount(name, free))
        }
        Refusal::Taint(taint) => format!("taint {taint}"),
        Refusal::Requirement { key } => format!("not the {key} asked for"),
        Refusal::HostPort => "the host port is taken".to_owned(),
        Refusal::Volume => "the volumes can not be reached or attached".to_owned(),
        Refusal::Spread { key } => format!("topology spread over {key}"),
        Refusal::Affinity { key } => format!("pod affinity over {key}"),
        Refusal::AntiAffinity { key } => format!("pod anti-affinity over {key}"),
        other => in_short(other, "node"),
    }
}

fn describe(engine: &Engine<'_, '_>, class: ClassIndex, pool: &str, refusal: &Refusal) -> String {
    match refusal {
        Refusal::Taint(taint) => format!("taint {taint} is not tolerated"),
        Refusal::Requirement { key } => describe_requirement(engine, class, pool, key).1,
        Refusal::Resource { name, requested, available } if name == ATTACHABLE_VOLUMES => format!(
            "no allowed instance type attaches as many volumes: it has {requested}, at most {available} are taken to fit on one node"
        ),
        Refusal::Resource { name, requested, available } => format!(
            "no allowed instance type has room: {name} {} requested, at most {} on one node{}",
            amount(name, *requested),
            amount(name, *available),
            beside_daemons(engine, class, pool, (name, *requested)).unwrap_or_default()
        ),
        Refusal::HostPort => "a DaemonSet takes the host port on every node".to_owned(),
        Refusal::Volume => volumes_out_of_reach(engine, class),
        Refusal::Devices => {
            let existing = why_not_existing(engine, class).map(|it| it.to_string()).unwrap_or_default();
            format!("{existing}, and nobody knows which devices a new node would have")
        }
        Refusal::Spread { key } => format!("a new node would violate the topology spread over {key}"),
        Refusal::Affinity { key } => format!("no new node would be near the pods that the affinity over {key} names"),
        Refusal::AntiAffinity { key } => {
            format!("every new node would be too near the pods that the anti-affinity over {key} names")
        }
        Refusal::Offering => "no allowed instance type is offered in an allowed zone and capacity type".to_owned(),
        Refusal::EmptyPool => template_of(engine, pool).map(Template::nothing_offered_text).unwrap_or_default(),
        Refusal::Limit { scope: LimitScope::Reservation(id), limit, .. } => {
            let instances =
                if *limit == 1 { "the last instance".to_owned() } else { format!("all {limit} instances left") };
            let waits = if engine.waits_for_reservations() { "; the pod waits until they are launched" } else { "" };
            format!("capacity reservation {id} is used up: this plan takes {instances}{waits}")
        }
        Refusal::Limit { scope: LimitScope::EarlyEnds(why), .. } => why.clone(),
        Refusal::Limit { scope, resource, limit, used, needed } => format!(
            "{}limits.{resource} {} {}reached: {} used or planned, the smallest node that fits needs {}",
            if *scope == LimitScope::Cluster { "spec." } else { "" },
            amount(resource, *limit),
            if *scope == LimitScope::Cluster { "of cutlist.yaml " } else { "" },
            amount(resource, *used),
            amount(resource, *needed)
        ),
        Refusal::MinValues { key } => format!("fewer values of {key} are left than minValues asks for"),
    }
}

/// The DaemonSets without whose pods there would be enough of a resource on a node of the pool, as an addition to the sentence that there is
/// not. O(types + DaemonSets).
fn beside_daemons(
    engine: &Engine<'_, '_>,
    class: ClassIndex,
    pool: &str,
    (resource, requested): (&str, i64),
) -> Option<String> {
    let problem = engine.problem;
    let dimension = (0..problem.dimensions.count()).find(|it| problem.dimensions.name(*it) == resource)?;
    let variant = *problem.classes[class].variants.last()?;
    let mut of_pool = problem.templates.enumerated().filter(|(_, template)| template.name == pool);
    let taken = |(position, template): &(TemplateIndex, &Template)| {
        let Ok(set) = problem.fit_of_template(variant, *position) else { return false };
        let mut offered = template.offerings.offered(set);
        offered.any(|(it, entry)| template.room[it][dimension] < requested && entry.allocatable[dimension] >= requested)
    };
    let (_, template) = of_pool.find(taken)?;
    let takes = |daemon: &&Daemon| daemon.requests.get(resource) > 0 && daemon.tolerates(&template.taints);
    let names = problem.daemons.iter().filter(takes).map(|daemon| format!("{}/{}", daemon.namespace, daemon.name));
    let names: Vec<String> = names.collect();
    let shown = names.get(..DAEMONS_NAMED_MAX.min(names.len())).unwrap_or_default().join(", ");
    match names.len().saturating_sub(DAEMONS_NAMED_MAX) {
        0 if names.len() == 1 => Some(format!(", beside DaemonSet {shown}")),
        0 => Some(format!(", beside DaemonSets {shown}")),
        more => Some(format!(", beside DaemonSets {shown} and {more} more")),
    }
}

fn volumes_out_of_reach(engine: &Engine<'_, '_>, class: ClassIndex) -> String {
    let zones = zones_of_volumes(engine, class);
    let one_node = beside_others(engine, class).or_else(|| on_one_node(engine, class));
    match (one_node, zones.is_empty()) {
        (Some(text), _) => text,
        (None, true) => "its nodes can not reach the volumes".to_owned(),
        (None, false) => format!("its nodes can not reach the volumes, which are in {}", zones.join(", ")),
    }
}

/// Where other pods use a claim of the class, which is attached to one node at a time: that, and why the node does not take one more pod.
/// O(nodes).
fn beside_others(engine: &Engine<'_, '_>, class: ClassIndex) -> Option<String> {
    let problem = engine.problem;
    let variant = *problem.classes[class].variants.last()?;
    let mut constraints = problem.variants[variant].constraints.iter().copied();
    let (group, claim) = constraints.find_map(|group| Some((group, problem.groups[group].claim.as_deref()?)))?;
    let host = engine.all_hosts().find(|host| engine.counted(group, host.domain()) > 0)?;
    let Some(refusal) = problem.machines.get(host).and_then(|_| engine.refusal_of_existing(class, variant, host))
    else {
        return Some(format!(
            "PersistentVolumeClaim {claim} is ReadWriteOnce, so its pods must be on one node, and not all of them find room on one"
        ));
    };
    let free = if let Refusal::Resource { available, .. } = &refusal { *available } else { 0 };
    let (name, why) = (problem.machines[host].name, of_node(&refusal, free));
    Some(format!("PersistentVolumeClaim {claim} is ReadWriteOnce and in use on node {name}, and there: {why}"))
}

/// Where the volumes of a class are, or are to be made, on a node that is there and on no other: that, and why the node does not take one
/// more pod of it. O(pods + nodes + claims).
fn on_one_node(engine: &Engine<'_, '_>, class: ClassIndex) -> Option<String> {
    let problem = engine.problem;
    let pods = &problem.classes[class];
    let mut alternatives = pods.volume_alternatives.iter();
    let host_name = alternatives.next()?.get(keys::HOSTNAME)?.single_value()?;
    let is_same = |it: &Requirements| it.get(keys::HOSTNAME).and_then(Requirement::single_value) == Some(host_name);
    if !alternatives.all(is_same) {
        return None;
    }
    let is_it = |host: &HostIndex| problem.machines[*host].label(keys::HOSTNAME) == Some(host_name);
    let host = engine.existing_hosts().find(is_it)?;
    let name = problem.machines[host].name;
    let refusal = engine.refusal_of_existing(class, *pods.variants.last()?, host)?;
    let free = if let Refusal::Resource { available, .. } = &refusal { *available } else { 0 };
    let why = of_node(&refusal, free);
    let pod = problem.class_of_pod.iter().position(|of_pod| *of_pod == Some(class))?;
    let pod = &problem.snapshot.pods[PodIndex::from(pod)];
    let is_used = |claim: &str| {
        let mut claims = pod.spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
        claims.any(|used| used.claim_name == claim)
    };
    let selected = problem.snapshot.persistent_volume_claims.iter().map(|claim| &claim.metadata).find(|metadata| {
        let node = metadata.annotations.as_ref().and_then(|annotations| annotations.get(SELECTED_NODE));
        metadata.namespace.as_deref() == Some(pod.metadata.namespace.as_str())
            && metadata.name.as_deref().is_some_and(is_used)
            && node.is_some_and(|node| node == name)
    });
    Some(match selected.and_then(|metadata| metadata.name.as_deref()) {
        Some(claim) => format!(
            "PersistentVolumeClaim {claim} is to get its volume on node {name}, by its annotation {SELECTED_NODE}, and there: {why}"
        ),
        None => format!("its volumes can be used on node {name} alone, and there: {why}"),
    })
}

/// The zones in which the volumes of a class can be; empty where they can be in any, or nobody says so.
pub fn zones_of_volumes(engine: &Engine<'_, '_>, class: ClassIndex) -> Vec<String> {
    let alternatives = &engine.problem.classes[class].volume_alternatives;
    let zones = |requirements: &Requirements| requirements.get(keys::ZONE).and_then(Requirement::values).cloned();
    let zones: Option<Vec<BTreeSet<String>>> = alternatives.iter().map(zones).collect();
    let zones: BTreeSet<String> = zones.into_iter().flatten().flatten().collect();
    zones.into_iter().collect()
}

/// What a pod asks for on a label, and what the pool has.
pub struct Sides<'p> {
    pub asked: &'p Requirement,
    pub pool: &'p Template,
    pub offered: Option<&'p Requirement>,
}

/// The template of a pool that is not for a reservation.
fn template_of<'p>(engine: &Engine<'p, '_>, pool: &str) -> Option<&'p Template> {
    engine.problem.templates.iter().find(|template| template.name == pool && !template.is_reserved())
}

pub fn sides<'p>(engine: &Engine<'p, '_>, class: ClassIndex, pool: &str, key: &str) -> Option<Sides<'p>> {
    let problem = engine.problem;
    let variant = &problem.variants[*problem.classes[class].variants.last()?];
    let template = template_of(engine, pool)?;
    // Of the name of a node to come there is nothing to say but that it has one.
    let offered = template.requirements.get(key).filter(|_| key != keys::HOSTNAME);
    Some(Sides { asked: variant.requirements.get(key)?, pool: template, offered })
}

/// On which label pod and pool do not agree, and how: the word of the kind, and the sentence.
fn describe_requirement(engine: &Engine<'_, '_>, class: ClassIndex, pool: &str, key: &str) -> (&'static str, String) {
    let Some(sides) = sides(engine, class, pool, key) else {
        return ("NotAgreed", format!("pod and pool do not agree on {key}"));
    };
    let (problem, asked) = (engine.problem, values(sides.asked));
    match sides.offered {
        _ if key == NODE_NAME => ("NodeByName", format!("the pod asks for a node by its name: {asked}")),
        _ if key == keys::HOSTNAME && sides.asked.allows_nothing() && sides.asked.allows_absence() => {
            ("OnEveryNode", format!("the pod wants a node without {key}, and every node has one"))
        }
        _ if opts_out(&sides, key) => {
            ("OptsOut", format!("the pod wants no node of any NodePool ({key} DoesNotExist): none is bought for it"))
        }
        _ if key == keys::NODE_POOL && sides.asked.values().is_some() => {
            let pools = problem.templates.iter().map(|template| template.name.as_str());
            let meant = suggest::nearest(&asked, pools).filter(|pool| *pool != asked);
            let hint = meant.map(|pool| format!(" (did you mean {pool}?)")).unwrap_or_default();
            ("OtherNodePool", format!("the pod asks for NodePool {asked}{hint}"))
        }
        _ if sides.asked.is_contradiction() => (
            "Contradiction",
            format!("what the pod asks for on {key} leaves no value: its selector and affinity exclude each other"),
        ),
        _ if is_without_image(engine, &sides, key) => (
            "NoImage",
            format!("the pod wants {key} {asked}, which EC2NodeClass {} has no image for", class_of(&sides)),
        ),
        _ if !unpriced::alone_left(sides.pool, &only(key, sides.asked)).is_empty() => {
            ("NoPrice", format!("the pod wants {key} {asked}, which no instance type with a price has"))
        }
        _ if is_of_reservations_used_up(&sides, key) => {
            let class = class_of(&sides);
            let text = format!(
                "the pod wants {key} {asked}, and no capacity reservation of EC2NodeClass {class} has it with an instance left"
            );
            ("ReservationsUsedUp", text)
        }
        Some(offered) => {
            // What others sell, and this pool does not, is no slip.
            let hints = if sides.pool.offerings.defines(key) { hints(&sides, key) } else { Vec::new() };
            let slip = if hints.iter().any(|hint| hint.asks) { in_brackets(&hints) } else { String::new() };
            ("OtherValues", format!("the pod wants {key} {asked}, the pool has {}{slip}", values(offered)))
        }
        None if key == keys::OPERATING_SYSTEM => (
            "NotOfClass",
            format!("the pod wants {key} {asked}, which no node of EC2NodeClass {} has", class_of(&sides)),
        ),
        None if !sides.pool.offerings.defines(key) => {
            ("NoSuchLabel", format!("the pod wants {key} {asked}, the pool has no such label"))
        }
        None => match restricting(&sides, key) {
            Some((own, requirement)) => {
                let text =
                    format!("the pod wants {key} {asked}, which the pool's {own} {} leaves out", values(requirement));
                ("LeftOut", text)
            }
            None if is_in_subnets(key) && problem.offer.zones_of_pool(sides.pool.pool).is_some() => (
                "NoSubnet",
                format!("the pod wants {key} {asked}, where EC2NodeClass {} has no subnet", class_of(&sides)),
            ),
            None => {
                let hints = in_brackets(&hints(&sides, key));
                ("NotInCatalog", format!("the pod wants {key} {asked}, which the catalog does not have{hints}"))
            }
        },
    }
}

/// Whether the pod asks for reserved capacity alone, and the pool for some too: what is left of it is not up to either.
fn is_of_reservations_used_up(sides: &Sides<'_>, key: &str) -> bool {
    let others = [keys::ON_DEMAND, keys::SPOT];
    match key {
        keys::CAPACITY_TYPE => {
            sides.asked.allows(keys::RESERVED)
                && !others.into_iter().any(|other| sides.asked.allows(other))
                && sides.offered.is_none_or(|offered| offered.allows(keys::RESERVED))
        }
        keys::CAPACITY_RESERVATION_ID | keys::CAPACITY_RESERVATION_TYPE => !sides.asked.allows_absence(),
        _ => false,
    }
}

/// Whether the pod says that it is for nodes of others: those of managed node groups have none of these labels.
pub fn opts_out(sides: &Sides<'_>, key: &str) -> bool {
    let is_of_every_node = matches!(key, keys::NODE_POOL | keys::REGISTERED | keys::INITIALIZED);
    is_of_every_node && sides.asked.allows_nothing() && sides.asked.allows_absence()
}

fn only(key: &str, requirement: &Requirement) -> Requirements {
    let mut alone = Requirements::new();
    alone.add(key, requirement.clone());
    alone
}

fn class_of<'p>(sides: &Sides<'p>) -> &'p str {
    sides.pool.requirements.get(keys::EC2_NODE_CLASS).and_then(Requirement::single_value).unwrap_or_default()
}

/// Whether instance types of the pool have what the pod asks for on a label, and its class has images for none of them.
fn is_without_image(engine: &Engine<'_, '_>, sides: &Sides<'_>, key: &str) -> bool {
    let offerings = &sides.pool.offerings;
    let mut asked = offerings.compile(&sides.pool.requirements);
    if !offerings.defines(key) {
        return false;
    }
    offerings.restrict(&mut asked, key, sides.asked);
    let (offer, class) = (&engine.problem.offer, class_of(sides));
    let mut types = asked.each_type().peekable();
    types.peek().is_some() && types.all(|it| offer.lacks_image(class, &offerings.types[it].name))
}

/// What is wrong with the values that a pod asks for.
fn hints(sides: &Sides<'_>, key: &str) -> Vec<Hint> {
    let offerings = &sides.pool.offerings;
    let all = offerings.all();
    let values = Values::of_label(&offerings.region, key, offerings.values_of(&all, key));
    let faults = sides.asked.to_entries(key).into_iter().flat_map(|it| values.faults(key, it.operator, &it.values));
    faults.filter_map(|fault| fault.hint).collect()
}

/// As an addition to the sentence that nothing has the values.
fn in_brackets(hints: &[Hint]) -> String {
    let texts: Vec<&str> = hints.iter().map(|hint| hint.text.as_str()).collect();
    if texts.is_empty() { String::new() } else { format!(" ({})", texts.join("; ")) }
}

/// Whether a label says in which subnets a node can be.
fn is_in_subnets(key: &str) -> bool {
    matches!(normalized(key), keys::ZONE | keys::ZONE_ID)
}

/// The pool's own requirement that leaves out what the pod asks for on another label, if it is one alone.
pub fn restricting<'p>(sides: &Sides<'p>, key: &str) -> Option<(&'p str, &'p Requirement)> {
    let offerings = &sides.pool.offerings;
    let mut asked = offerings.all();
    offerings.restrict(&mut asked, key, sides.asked);
    if !offerings.prune(&mut asked) {
        return None;
    }
    let left_out_by = |requirement: &(&str, &Requirement)| {
        let mut rest = asked.clone();
        offerings.restrict(&mut rest, requirement.0, requirement.1);
        !offerings.prune(&mut rest)
    };
    sides.pool.requirements.iter().filter(|(own, _)| offerings.defines(own)).find(left_out_by)
}

pub fn values(requirement: &Requirement) -> String {
    let entries = requirement.to_entries("");
    let texts = entries.iter().map(|entry| {
        let shown = |value: &String| if value.is_empty() { "\"\"".to_owned() } else { value.clone() };
        let list = entry.values.iter().map(shown).collect::<Vec<_>>().join(", ");
        match entry.operator {
            Operator::In => list,
            // Bounds are kept inclusive; people write them the other way.
            Operator::Gte => {
                format!("Gt {}", list.parse::<i64>().map_or(list.clone(), |bound| bound.saturating_sub(1).to_string()))
            }
            Operator::Lte => {
                format!("Lt {}", list.parse::<i64>().map_or(list.clone(), |bound| bound.saturating_add(1).to_string()))
            }
            operator if list.is_empty() => format!("{operator:?}"),
            operator => format!("{operator:?} {list}"),
        }
    });
    texts.collect::<Vec<_>>().join(" and ")
}
