//! One launch: its claims become calls of CreateFleet, and instances are given to claims, so that whatever is interrupted, each claim ends
//! with one instance and each instance with one claim.
//!
//! 1. What the launch has already is looked for by its tag, and is given out first.
//! 2. A call whose answer was lost is made again, the very same: its token brings the same answer.
//! 3. For the claims that still lack one, the next call is made, with the next token.
//!
//! What this process does not remember, since another made the calls, EC2 does: a token that stands for another call says that there was
//! one, and what that launched shows up under the tag.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::addresses::{Call, Needed};
use crate::adapters::aws::api::instances::InstanceAnswer;
use crate::adapters::aws::api::launch::{FleetAnswer, FleetRequest};
use crate::adapters::aws::api::{Action, ApiError, Ec2Api};
use crate::adapters::aws::failures::{FailureClass, Remembered};
use crate::adapters::aws::fleet::{
    self, FleetOutcome, LaunchPart, LaunchPlace, LaunchedInstance, OfferingFailure, Order, Places, Surroundings,
    assign, parts, places, read, requests,
};
use crate::adapters::aws::instances::{self, instance_id};
use crate::adapters::aws::launch_templates::{Group, Resolved, group, tags};
use crate::adapters::aws::refusals;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::model::Resources;
use crate::core::model::resources::PODS;
use crate::ports::{
    Clock, Instance, LaunchFailure, LaunchRequest, Offering, PortError, PortErrorKind, chain, is_to_come,
};

use super::classes::{Described, cluster};
use super::fleet_failures::{classify_call, lacks_template, scarce};
use super::pace::{self, PATIENCE};
use super::pieces::{self, Pieces};
use super::{AwsCloud, name_of};

/// EC2 shows under its tag what was launched before this process began within so long; a token that stands for a call which launched nothing
/// is then passed over.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// After a refusal that nobody can do anything about here, the launch is not tried again for so long; each further one doubles that.
const REFUSED_FIRST: SignedDuration = SignedDuration::from_secs(15);
const REFUSED_LAST: SignedDuration = SignedDuration::from_mins(5);
/// Launches that are remembered; those of long ago go first.
const REMEMBERED_MAX: usize = 2_000;

/// What this process remembers of a part of a launch.
#[derive(Clone, Debug, Default)]
pub struct Remembrance {
    /// Calls that were answered or given up, or that an earlier process made.
    attempts: u32,
    pieces: Pieces,
    /// The call whose answer did not come.
    unanswered: Option<FleetRequest>,
    /// What was launched, by id: EC2 shows it a while later.
    launched: BTreeMap<String, LaunchedInstance>,
    /// UIDs of claims by the id of the instance that each was given: it may not be written yet.
    given: BTreeMap<String, String>,
    refusal: Option<LaunchRefusal>,
    used_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct LaunchRefusal {
    said: Said,
    count: u32,
    at: Timestamp,
    until: Timestamp,
}

impl LaunchRefusal {
    /// Whether it is waited for now; not where a clock noted it that was set back since.
    fn counts(&self, now: Timestamp) -> bool {
        now < self.until && !is_to_come(self.at, now)
    }
}

/// Why claims got nothing: for each of them the same.
#[derive(Clone, Debug)]
struct Said {
    kind: PortErrorKind,
    text: String,
    exhausted: Vec<Offering>,
}

impl Said {
    fn new(kind: PortErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), exhausted: Vec::new() }
    }

    fn of_claim(&self, claim: &NodeClaim) -> LaunchFailure {
        let operation = format!("launch {}: {}", name_of(claim), self.text);
        let error = PortError { operation, kind: self.kind, source: None };
        LaunchFailure { error, exhausted: self.exhausted.clone() }
    }
}

/// Calls that can be made, with their templates.
struct Prepared {
    groups: Vec<Group>,
    requests: Vec<FleetRequest>,
    /// Instances that all of them together may ask for.
    most: u32,
}

pub type Remembrances = BTreeMap<Call, Remembrance>;

/// What claims of a part got so far, by UID.
#[derive(Debug, Default)]
struct Given {
    instances: BTreeMap<String, Instance>,
    /// Those that lack one.
    lacking: BTreeSet<String>,
    /// The addresses that each takes, where EC2 is asked for more.
    needs: BTreeMap<String, Needed>,
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> AwsCloud<P, C> {
    /// One answer for each claim, in their order.
    pub(super) async fn launch_all(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        // The claims of a large launch come in several requests.
        let turn = self.turn_of(request.launch_id);
        let _turn = turn.lock().await;
        let mut answers: BTreeMap<String, Result<Instance, LaunchFailure>> = BTreeMap::new();
        let launches = BTreeSet::from([request.launch_id.to_owned()]);
        match instances::of_launches(self.api(), &launches).await {
            Ok(found) => {
                for part in parts(request) {
                    self.launch_part(request, &part, &found, &mut answers).await;
                }
            }
            Err(error) => {
                let text = format!("what it launched before is not known: {}", error.text());
                let said = Said::new(retryable(error.class.kind()), text);
                let failed = request.claims.iter().map(|claim| (uid(claim).to_owned(), Err(said.of_claim(claim))));
                answers.extend(failed);
            }
        }
        let lost = Said::new(PortErrorKind::Temporary, "it was not looked at");
        let mut answer = |claim: &&NodeClaim| answers.remove(uid(claim)).unwrap_or_else(|| Err(lost.of_claim(claim)));
        request.claims.iter().map(&mut answer).collect()
    }

    async fn launch_part(
        &self,
        request: &LaunchRequest<'_>,
        part: &LaunchPart<'_>,
        found: &[InstanceAnswer],
        answers: &mut BTreeMap<String, Result<Instance, LaunchFailure>>,
    ) {
        let mut remembered = self.remembered(part);
        let mut given =
            Given { lacking: part.claims.iter().map(|claim| uid(claim).to_owned()).collect(), ..Given::default() };
        let of_part =
            found.iter().filter(|it| !it.state.is_ended() && number_of(it) == fleet::number(&part.specification));
        let mut known: BTreeMap<String, Instance> =
            of_part.map(|instance| (instance.id.clone(), instances::to_port(instance))).collect();
        let ended: BTreeSet<&str> =
            found.iter().filter(|it| it.state.is_ended()).map(|instance| instance.id.as_str()).collect();
        for (id, launched) in remembered.launched.iter().filter(|(id, _)| !ended.contains(id.as_str())) {
            known.entry(id.clone()).or_insert_with(|| self.instance(request, part, launched));
        }
        given.give(request, &known, &mut remembered.given);
        let outcome = if given.lacking.is_empty() {
            Ok(())
        } else {
            let outcome = self.ask(request, part, &mut remembered, &mut known, &mut given).await;
            if remembered.unanswered.is_none() {
                self.with_addresses(|addresses| addresses.answered(&call_of(part)));
            }
            outcome
        };
        self.remember(part, remembered, outcome.as_ref().err());
        for claim in &part.claims {
            let answer = match (given.instances.remove(uid(claim)), &outcome) {
                (Some(instance), _) => {
                    self.names.add(&instance, name_of(claim));
                    Ok(instance)
                }
                (None, Err(said)) => Err(said.of_claim(claim)),
                (None, Ok(())) => Err(Said::new(PortErrorKind::Temporary, "EC2 launched fewer").of_claim(claim)),
            };
            answers.insert(uid(claim).to_owned(), answer);
        }
    }

    /// Asks for what is lacking; an error where claims still lack an instance in the end.
    async fn ask(
        &self,
        request: &LaunchRequest<'_>,
        part: &LaunchPart<'_>,
        remembered: &mut Remembrance,
        known: &mut BTreeMap<String, Instance>,
        given: &mut Given,
    ) -> Result<(), Said> {
        let now = self.pace.now();
        if let Some(refusal) = remembered.refusal.as_ref().filter(|refusal| refusal.counts(now)) {
            return Err(refusal.said.clone());
        }
        given.needs = self.needs(request, part).await;
        if let Some(lost) = remembered.unanswered.clone() {
            let outcome = self.made(request, &lost, &[], remembered).await?;
            self.take(request, part, &outcome, remembered, known, given);
            if given.lacking.is_empty() {
                return Ok(());
            }
        }
        let Prepared { groups, requests, mut most } = self.prepared(request, part, remembered.attempts, given).await?;
        let mut failures: Vec<OfferingFailure> = Vec::new();
        let mut requests = requests.into_iter();
        let mut next = requests.next();
        while let Some(mut fleet) = next.take() {
            let wanted = number_as_u32(given.lacking.len()).min(most);
            fleet.count = remembered.pieces.size(wanted, self.pace.room(Action::CreateFleet));
            fleet.client_token = fleet::client_token(part.launch_id, &part.specification, remembered.attempts);
            let refusals = remembered.pieces.refusals();
            let outcome = match self.made(request, &fleet, &groups, remembered).await {
                Ok(outcome) => outcome,
                // The very same once more, then fewer.
                Err(_) if remembered.pieces.refusals() > refusals && !self.is_late(now) => {
                    next = Some(fleet);
                    continue;
                }
                Err(said) => return Err(said),
            };
            self.take(request, part, &outcome, remembered, known, given);
            let launched = number_as_u32(outcome.instances.len());
            most = most.saturating_sub(launched);
            failures.extend(outcome.failures);
            if given.lacking.is_empty() {
                return Ok(());
            }
            if most == 0 {
                let text = "the subnets have no addresses for more at once: the rest is asked for when it is known what is left";
                return Err(Said::new(PortErrorKind::Temporary, text));
            }
            let is_piece = fleet.count < wanted && launched >= fleet.count;
            if is_piece && self.is_late(now) {
                let text = "EC2 takes no more at once: the rest is asked for in a moment";
                return Err(Said::new(PortErrorKind::Temporary, text));
            }
            next = if is_piece { Some(fleet) } else { requests.next() };
        }
        Err(self.refused(request, failures).await)
    }

    /// Whether others are to get their turn, after who began then.
    fn is_late(&self, began: Timestamp) -> bool {
        let now = self.pace.now();
        now.duration_since(began) >= PATIENCE || is_to_come(began, now)
    }

    /// By UID, the addresses that the claims of a part take.
    async fn needs(&self, request: &LaunchRequest<'_>, part: &LaunchPart<'_>) -> BTreeMap<String, Needed> {
        let cluster = match request.class {
            Some(class) => {
                let facts = self.classes.described(class, self.pace.now()).await.facts;
                cluster(&self.settings.identity, &facts)
            }
            None => None,
        };
        let is_ipv6 = cluster.is_some_and(|cluster| cluster.is_ipv6());
        let spec = request.class.map(|class| &class.spec);
        let of_claim = |claim: &&NodeClaim| (uid(claim).to_owned(), Needed::of(spec, pods_of(claim), is_ipv6));
        part.claims.iter().map(of_claim).collect()
    }

    /// The calls, with the templates that they name made.
    async fn prepared(
        &self,
        request: &LaunchRequest<'_>,
        part: &LaunchPart<'_>,
        attempts: u32,
        given: &Given,
    ) -> Result<Prepared, Said> {
        let Some(class) = request.class else {
            let text = format!("there is no EC2NodeClass {}", part.specification.node_class);
            return Err(Said::new(PortErrorKind::Permanent, text));
        };
        let Described { class, facts } = self.classes.described(class, self.pace.now()).await;
        let Some(cluster) = cluster(&self.settings.identity, &facts) else {
            let why = facts.cluster.trouble_text().unwrap_or_else(|| "EKS was not asked yet".to_owned());
            return Err(Said::new(PortErrorKind::Temporary, format!("the cluster's endpoint is not known: {why}")));
        };
        let catalog = self.base_catalog().await.map_err(|error| Said::new(error.kind, chain(&error)))?;
        let mut resolved = Resolved::of(&class, &cluster, &self.settings.identity.region);
        resolved.images = request.images.unwrap_or(resolved.images);
        resolved.reserves_capacity = request.rules.reserves_capacity;
        resolved.placement_group = match facts.placement_group.value() {
            Some(Ok(group)) => group.as_ref().map(|group| crate::adapters::aws::launch_templates::PlacementGroup {
                id: group.id.clone(),
                partition: None,
            }),
            Some(Err(why)) => return Err(Said::new(PortErrorKind::Permanent, why.clone())),
            // Outside of it would be another node than the class asks for.
            None => {
                let why = facts.placement_group.trouble_text().unwrap_or_else(|| "EC2 was not asked yet".to_owned());
                return Err(Said::new(PortErrorKind::Temporary, format!("the placement group is not known: {why}")));
            }
        };
        let permanent = |error: &dyn std::error::Error| Said::new(PortErrorKind::Permanent, chain(error));
        let grouped =
            group(&resolved, &part.specification, &catalog.instance_types).map_err(|error| permanent(&error))?;
        let owner = tags::Owner {
            cluster: &cluster.name,
            installation: request.installation,
            node_pool: &part.specification.node_pool,
            node_class: resolved.node_class,
        };
        let tags = tags::of_launch(&class.spec.tags, owner).map_err(|error| permanent(&error))?;
        let Places { subnets, most } = self.places(&class, part, given);
        let order = if request.rules.keeps_order { Order::Plan } else { Order::Price };
        let context = class.spec.context.as_deref();
        let made =
            requests(part, &grouped.groups, attempts, &Surroundings { subnets: &subnets, order, tags: &tags, context });
        if made.requests.is_empty() {
            return Err(nothing_to_ask(&class, &grouped, &made));
        }
        self.ensure(&grouped.groups, &made.requests).await?;
        Ok(Prepared { groups: grouped.groups, requests: made.requests, most })
    }

    /// Of each zone of the part the subnet with most room, if the largest of its nodes fits. What the call may take is kept for it.
    fn places(&self, class: &crate::api::ec2_node_class::EC2NodeClass, part: &LaunchPart<'_>, given: &Given) -> Places {
        let needed = given.lacking.iter().filter_map(|uid| given.needs.get(uid)).copied();
        let needed =
            needed.max_by_key(|needed| (needed.pods, needed.instance)).unwrap_or(Needed { instance: 1, pods: 0 });
        let subnets: Vec<_> = class.status.iter().flat_map(|status| &status.subnets).collect();
        let specified: BTreeSet<&str> =
            part.specification.offerings.iter().map(|offering| offering.zone.as_str()).collect();
        let now = self.pace.now();
        // Found and kept in one go, or two calls would be given the same addresses.
        self.with_addresses(|addresses| {
            addresses.answered(&call_of(part));
            let of_zone = |zone: &str| {
                let ids = || subnets.iter().filter(|subnet| subnet.zone == zone).map(|subnet| subnet.id.as_str());
                let is_counted = ids().any(|id| addresses.room(id).is_some());
                let place = |subnet: String, fits| LaunchPlace { zone: zone.to_owned(), subnet, fits };
                let best = addresses.best(zone, ids(), needed);
                let best = best.map(|room| place(room.subnet.clone(), Some(room.nodes(needed))));
                // Where EC2 did not say how many are free, it is asked and may refuse.
                best.or_else(|| ids().next().filter(|_| !is_counted).map(|id| place(id.to_owned(), None)))
            };
            let found = specified.into_iter().filter_map(of_zone).collect();
            let places = places(found, u32::try_from(given.lacking.len()).unwrap_or(u32::MAX));
            addresses.asking(call_of(part), places.subnets.values().cloned().collect(), needed, places.most, now);
            places
        })
    }

    async fn ensure(&self, groups: &[Group], requests: &[FleetRequest]) -> Result<(), Said> {
        let named: BTreeSet<&str> =
            requests.iter().flat_map(|request| &request.configs).map(|config| config.template.as_str()).collect();
        let templates = groups.iter().filter(|group| named.contains(group.name.as_str()));
        let templates = templates.map(|group| (group.name.as_str(), &group.template)).collect();
        match self.templates.ensure(self.api(), &self.pace, &templates).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.said(&error).await),
        }
    }

    /// Makes a call. It is remembered until its answer is there.
    async fn made(
        &self,
        request: &LaunchRequest<'_>,
        fleet: &FleetRequest,
        groups: &[Group],
        remembered: &mut Remembrance,
    ) -> Result<FleetOutcome, Said> {
        let was_lost = remembered.unanswered.is_some();
        remembered.unanswered = Some(fleet.clone());
        // One whose answer was lost stays as it is.
        let is_divisible = !was_lost && pieces::is_divisible(fleet.count);
        let mut answer = self.create_fleet(fleet, is_divisible).await;
        if lacks_template(&answer) {
            self.templates.forget(fleet.configs.iter().map(|config| config.template.as_str()));
            self.ensure(groups, std::slice::from_ref(fleet)).await?;
            answer = self.create_fleet(fleet, is_divisible).await;
        }
        let error = match answer {
            Ok(answer) => {
                remembered.unanswered = None;
                remembered.attempts = remembered.attempts.saturating_add(1);
                remembered.pieces.taken();
                return Ok(read(fleet, &answer));
            }
            Err(error) => error,
        };
        let now = self.pace.now();
        if error.class == FailureClass::TokenTaken {
            remembered.unanswered = None;
            // A process before this one made it, and this one has looked since; what has not shown by then never was.
            if now.duration_since(self.looks_since(now)) >= SHOWN_WITHIN {
                remembered.attempts = remembered.attempts.saturating_add(1);
            }
            let text = "it was launched before, and EC2 does not show yet what came of that";
            return Err(Said::new(PortErrorKind::Temporary, text));
        }
        // Only where no answer came may something have been launched; and who is turned away at the door does not hear what came of it before.
        let is_answered = match error.class {
            FailureClass::Server => false,
            FailureClass::Throttled | FailureClass::Denied => !was_lost,
            _ => true,
        };
        if is_answered {
            remembered.unanswered = None;
        }
        let is_refused = is_divisible && error.class == FailureClass::Throttled && error.code != pace::WAITED;
        if is_refused && remembered.pieces.refused(fleet.count) {
            // Another call has another token.
            remembered.attempts = remembered.attempts.saturating_add(1);
        }
        let failure = classify_call(fleet, &error);
        self.note_failure(&failure);
        if error.class == FailureClass::Addresses {
            // It does not say in which.
            let subnets: BTreeSet<&str> =
                fleet.configs.iter().flat_map(|it| &it.overrides).map(|it| it.subnet_id.as_str()).collect();
            self.with_addresses(|addresses| subnets.into_iter().for_each(|subnet| addresses.exhausted(subnet, now)));
        }
        Err(self.refused(request, vec![failure]).await)
    }

    async fn create_fleet(&self, fleet: &FleetRequest, is_divisible: bool) -> Result<FleetAnswer, ApiError> {
        let call = async || self.api().create_fleet(fleet, false).await;
        let refusals = if is_divisible { 1 } else { u32::MAX };
        self.pace.call_until(refusals, Action::CreateFleet, fleet.count, call).await
    }

    /// Takes an answer: instances for claims, shortages for everybody's memory.
    fn take(
        &self,
        request: &LaunchRequest<'_>,
        part: &LaunchPart<'_>,
        outcome: &FleetOutcome,
        remembered: &mut Remembrance,
        known: &mut BTreeMap<String, Instance>,
        given: &mut Given,
    ) {
        let now = self.pace.now();
        for launched in &outcome.instances {
            remembered.launched.insert(launched.id.clone(), launched.clone());
            known.insert(launched.id.clone(), self.instance(request, part, launched));
            self.is_there(Offering {
                instance_type: launched.instance_type.clone(),
                zone: launched.zone.clone(),
                capacity_type: launched.capacity_type.clone(),
            });
        }
        given.give(request, known, &mut remembered.given);
        self.with_addresses(|addresses| {
            for (uid, instance) in &given.instances {
                let id = instance_id(&instance.provider_id).unwrap_or_default();
                let launched = remembered.launched.get(id);
                if let Some((launched, needed)) = launched.zip(given.needs.get(uid)) {
                    addresses.launching(uid, &launched.subnet_id, *needed, now);
                }
            }
        });
        outcome.failures.iter().for_each(|failure| self.note_failure(failure));
    }

    fn note_failure(&self, failure: &OfferingFailure) {
        let now = self.pace.now();
        if failure.failure.remembered == Remembered::Subnet
            && let Some(subnet) = &failure.subnet_id
        {
            self.with_addresses(|addresses| addresses.exhausted(subnet, now));
        }
        if let Some(scarce) = scarce(failure) {
            self.ran_out(scarce, &failure.code);
        }
    }

    /// Why claims got nothing though EC2 answered.
    async fn refused(&self, request: &LaunchRequest<'_>, failures: Vec<OfferingFailure>) -> Said {
        let outcome = FleetOutcome { instances: Vec::new(), failures };
        let class = outcome.class();
        let mut exhausted = outcome.exhausted(request.alternatives);
        let named = outcome.failures.iter().find(|failure| failure.failure.class == class);
        let Some(failure) = named else {
            return Said::new(PortErrorKind::Temporary, "EC2 launched nothing, and does not say why");
        };
        let others = outcome.failures.len().saturating_sub(1);
        let further = if others > 0 { format!(", and {others} further refusals") } else { String::new() };
        let error = ApiError {
            action: Action::CreateFleet,
            class,
            code: failure.code.clone(),
            message: failure.message.clone(),
        };
        let text = refusals::explain(self.api(), &error).await;
        let mut kind = kind(class);
        match class {
            // EC2 does not say of what there is none.
            FailureClass::Capacity if exhausted.is_empty() => {
                exhausted = request.alternatives.iter().map(Offering::from).collect();
            }
            // Of fleets, volumes and the like: another plan would meet it, too.
            FailureClass::Quota if exhausted.is_empty() => kind = PortErrorKind::Permanent,
            FailureClass::Addresses => kind = PortErrorKind::Temporary,
            _ => {}
        }
        Said { kind, text: format!("{text}{further}"), exhausted }
    }

    /// Of a launch template that could not be made.
    async fn said(&self, error: &ApiError) -> Said {
        let kind = match kind(error.class) {
            PortErrorKind::InsufficientCapacity => PortErrorKind::Permanent,
            kind => kind,
        };
        Said::new(kind, refusals::explain(self.api(), error).await)
    }

    /// As the controller knows it, before EC2 shows it.
    fn instance(&self, request: &LaunchRequest<'_>, part: &LaunchPart<'_>, launched: &LaunchedInstance) -> Instance {
        Instance {
            provider_id: instances::provider_id(&launched.zone, &launched.id),
            launch_id: request.launch_id.to_owned(),
            instance_type: launched.instance_type.clone(),
            zone: launched.zone.clone(),
            capacity_type: launched.capacity_type.clone(),
            image_id: launched.image_id.clone(),
            subnet_id: Some(launched.subnet_id.clone()).filter(|id| !id.is_empty()),
            security_groups: Vec::new(),
            reservation_id: None,
            launched_at: self.pace.now(),
            node_claim: String::new(),
            node_pool: part.specification.node_pool.clone(),
            node_class: part.specification.node_class.clone(),
            installation: request.installation.to_owned(),
        }
    }

    /// EC2 shows these by now, and counts their addresses.
    pub(super) fn are_shown(&self, listed: &[InstanceAnswer], now: Timestamp) {
        let uids: Vec<String> = self.with_launches(|launches| {
            let of_launch = |instance: &InstanceAnswer| {
                let launch = instance.tags.get(keys::LAUNCH)?.clone();
                launches.get(&(launch, number_of(instance)))?.given.get(&instance.id).cloned()
            };
            listed.iter().filter_map(of_launch).collect()
        });
        self.with_addresses(|addresses| uids.iter().for_each(|uid| addresses.shown(uid, now)));
    }

    fn remembered(&self, part: &LaunchPart<'_>) -> Remembrance {
        let key = call_of(part);
        self.with_launches(|launches| launches.get(&key).cloned().unwrap_or_default())
    }

    fn remember(&self, part: &LaunchPart<'_>, mut remembrance: Remembrance, failed: Option<&Said>) {
        let now = self.pace.now();
        remembrance.used_at = Some(now);
        let lasting = |said: &&Said| matches!(said.kind, PortErrorKind::Permanent | PortErrorKind::Denied);
        remembrance.refusal = failed.filter(lasting).map(|said| match &remembrance.refusal {
            // It was said again without being asked.
            Some(before) if before.counts(now) => before.clone(),
            before => {
                let count = before.as_ref().map_or(0, |before| before.count).saturating_add(1);
                let wait = REFUSED_FIRST.saturating_mul(1 << count.saturating_sub(1).min(10)).min(REFUSED_LAST);
                LaunchRefusal { said: said.clone(), count, at: now, until: now.saturating_add(wait).unwrap_or(now) }
            }
        });
        let key = call_of(part);
        self.with_launches(|launches| {
            launches.insert(key, remembrance);
            while launches.len() > REMEMBERED_MAX {
                let oldest = launches.iter().min_by_key(|(_, it)| it.used_at).map(|(key, _)| key.clone());
                let Some(oldest) = oldest else { return };
                launches.remove(&oldest);
            }
        });
    }
}

fn call_of(part: &LaunchPart<'_>) -> Call {
    (part.launch_id.to_owned(), fleet::number(&part.specification))
}

impl Given {
    /// Gives what is known to those that lack. An instance that one of them was given before goes to it again, and what others were given is
    /// theirs.
    fn give(
        &mut self,
        request: &LaunchRequest<'_>,
        known: &BTreeMap<String, Instance>,
        before: &mut BTreeMap<String, String>,
    ) {
        for (id, uid) in before.iter() {
            if let Some(instance) = known.get(id).filter(|_| self.lacking.remove(uid)) {
                self.instances.insert(uid.clone(), instance.clone());
            }
        }
        let of_others = request.assigned.iter().filter_map(|id| instance_id(id));
        let taken: Vec<&str> = of_others.chain(before.keys().map(String::as_str)).collect();
        let assignment = assign(known.keys().map(String::as_str), taken, self.lacking.iter().map(String::as_str));
        for (uid, id) in assignment.instances {
            if let Some(instance) = known.get(&id) {
                self.lacking.remove(&uid);
                self.instances.insert(uid.clone(), instance.clone());
                before.insert(id, uid);
            }
        }
    }
}

fn number_as_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn uid(claim: &NodeClaim) -> &str {
    claim.metadata.uid.as_deref().or(claim.metadata.name.as_deref()).unwrap_or_default()
}

/// The part of its launch that an instance is of.
fn number_of(instance: &InstanceAnswer) -> u8 {
    instance.tags.get(keys::LAUNCH_PART).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The pods that are planned for a node.
fn pods_of(claim: &NodeClaim) -> u32 {
    let pods = Resources::of(&claim.spec.resources.requests).map(|requests| requests.get(PODS)).unwrap_or_default();
    u32::try_from(pods).unwrap_or_default()
}

/// What the controller makes of it: a token that is taken is no conflict of objects.
fn kind(class: FailureClass) -> PortErrorKind {
    match class {
        // A permission that is missing is written on the claim, and so is what the class names and EC2 does not have; it is tried again later.
        FailureClass::Denied | FailureClass::NotFound => PortErrorKind::Permanent,
        class => retryable(class.kind()),
    }
}

fn retryable(kind: PortErrorKind) -> PortErrorKind {
    match kind {
        PortErrorKind::Conflict | PortErrorKind::NotFound => PortErrorKind::Temporary,
        kind => kind,
    }
}

/// Why there is no call to make.
fn nothing_to_ask(
    class: &crate::api::ec2_node_class::EC2NodeClass,
    grouped: &crate::adapters::aws::launch_templates::Grouped,
    made: &fleet::Requests,
) -> Said {
    let name = class.metadata.name.as_deref().unwrap_or_default();
    if made.not_asked.is_empty() {
        let text = match grouped.left_out.first() {
            Some((offering, why)) => {
                format!(
                    "no offering of the plan can be launched for EC2NodeClass {name}: {} {why}",
                    offering.instance_type
                )
            }
            None => "no instance type was asked for".to_owned(),
        };
        return Said::new(PortErrorKind::Permanent, text);
    }
    let text = format!("EC2NodeClass {name} has no subnet with room in any zone of the plan");
    let exhausted = made.not_asked.iter().map(|(offering, _)| offering.clone()).collect();
    Said { kind: PortErrorKind::InsufficientCapacity, text, exhausted }
}
