//! Instances that no claim knows, and claims whose instance is gone: more often something is not seen than that it is not wanted.
//!
//! An instance whose Node or tags say which pool it is of gets a claim again ([`super::adoption`]). What is left is held, said, shown in
//! a posted plan, and ended one at a time, after a while, and never under pods.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::annotations::of_claims;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{Prices, View, name_of, node_name, provider_id, uid_of};
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::{conditions, drain};
use crate::core::plan::{Note, NoteCode};
use crate::core::snapshot::{Pod, Snapshot};
use crate::ports::{Cloud, Cluster, Instance, Offering, PortError, PortErrorKind};

use super::adoption;
use super::effects::unless_gone;
use super::live_instances::LiveInstances;

/// How often it is looked for, and how often at most something ends.
pub const INTERVAL: SignedDuration = SignedDuration::from_mins(2);
/// How often it is looked for where a node is gone: as long as its claim stays, whatever keeps it, nothing else is known.
pub const URGENT_APART: SignedDuration = SignedDuration::from_secs(10);
/// A younger instance may belong to a claim that is just being written.
const YOUNGEST: SignedDuration = SignedDuration::from_secs(30);
/// A leader that looks for less long ends nothing: it may be the one that does not see.
const NEW_LEADER: SignedDuration = SignedDuration::from_mins(5);
/// For so long an instance is held after a plan has shown it.
const INSTANCE_HELD: SignedDuration = SignedDuration::from_mins(10);
/// For so long plans say that an instance was adopted.
const ADOPTION_TOLD: SignedDuration = SignedDuration::from_hours(1);
/// An instance of another installation that has no Node by then is of another cluster.
const STRANGE_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// For so long a claim is held whose instance is not among those of the cloud.
const CLAIM_HELD: SignedDuration = SignedDuration::from_mins(2);
/// Of all instances, the part that may end in an hour; one in any case.
const PERCENT_AN_HOUR_MAX: usize = 10;

/// What was found, and what was ended. It may be lost: a new leader waits anew.
#[derive(Debug, Default)]
pub struct Garbage {
    /// When it is looked for next.
    pub due_at: Option<Timestamp>,
    looks_since: Option<Timestamp>,
    /// Instances without a claim, by provider ID.
    held: BTreeMap<String, Held>,
    /// Instances that had no claim and have one again, by provider ID.
    adopted: BTreeMap<String, Adopted>,
    /// Names of claims without an instance, and since when.
    vanished: BTreeMap<String, Timestamp>,
    /// Instances with the name of this cluster that are of another one, by their installation.
    strangers: BTreeMap<String, usize>,
    /// When something was ended, within the last hour.
    ended: VecDeque<Timestamp>,
    /// What was said of the instances that are ours.
    pub live: LiveInstances,
}

#[derive(Clone, Debug)]
struct Adopted {
    what: Found,
    node_claim: String,
    at: Timestamp,
    is_shown: bool,
}

#[derive(Clone, Debug)]
struct Held {
    what: Found,
    why: String,
    /// When a plan that shows it was posted.
    shown_at: Option<Timestamp>,
}

/// What was found, for people.
#[derive(Clone, Debug)]
struct Found {
    offering: Offering,
    launched_at: Timestamp,
}

impl Found {
    fn of(instance: &Instance) -> Self {
        let Instance { instance_type, zone, capacity_type, launched_at, .. } = instance.clone();
        Self { offering: Offering { instance_type, zone, capacity_type }, launched_at }
    }

    /// When it was launched, and not its age: the text stays the same from plan to plan.
    fn text(&self, prices: &Prices) -> String {
        let Offering { instance_type, zone, capacity_type } = &self.offering;
        let price = prices.of(instance_type, (zone.as_str(), capacity_type.as_str()));
        let price = price.map_or_else(|| "nobody knows its price".to_owned(), |price| price.to_string());
        let launched_at = self.launched_at.round(Unit::Second).unwrap_or(self.launched_at);
        format!("{instance_type}, {capacity_type}, {zone}, launched {launched_at}, {price}")
    }
}

/// What is needed to judge what was found.
pub struct GarbageContext<'a, K, E> {
    pub cluster: &'a K,
    pub cloud: &'a E,
    pub view: &'a View<'a>,
    pub node_pools: &'a [NodePool],
    /// Whose instances these are; those of others are not looked at.
    pub installation: &'a str,
    pub now: Timestamp,
}

impl Garbage {
    /// Looks once. `true` when an object was written.
    pub async fn collect<K: Cluster, E: Cloud>(
        &mut self,
        found: &GarbageContext<'_, K, E>,
        aside: &mut SetAside,
        journal: &mut Journal,
    ) -> Result<bool, PortError> {
        let now = found.now;
        self.looks_since.get_or_insert(now);
        self.ended.retain(|at| now.duration_since(*at) < SignedDuration::from_hours(1));
        self.adopted.retain(|_, adopted| now.duration_since(adopted.at) < ADOPTION_TOLD);
        let instances = self.of_installation((found.cloud, found.installation), found.view.snapshot, now).await?;
        self.live.hear(&instances, now);
        let most = (instances.len() * PERCENT_AN_HOUR_MAX / 100).max(1);
        let mut wrote = self.look_at_instances(found, (&instances, most), aside, journal).await?;
        wrote |= self.look_at_claims(found, (&instances, most), aside, journal).await?;
        Ok(wrote)
    }

    /// Waits anew, as a new leader does: what was noted by a clock that was set back since would be waited for, maybe for weeks.
    pub fn begin_anew(&mut self) {
        *self = Self { live: std::mem::take(&mut self.live), ..Self::default() };
    }

    /// Sees what runs, for the plans of who only observes.
    pub async fn see<E: Cloud>(
        &mut self,
        (cloud, installation): (&E, &str),
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let instances = self.of_installation((cloud, installation), snapshot, now).await?;
        self.live.hear(&instances, now);
        Ok(())
    }

    /// Instances of others are not looked at; those of another cluster with the same name are counted.
    async fn of_installation<E: Cloud>(
        &mut self,
        (cloud, installation): (&E, &str),
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<Vec<Instance>, PortError> {
        let (ours, others): (Vec<Instance>, Vec<Instance>) = cloud
            .instances()
            .await?
            .into_iter()
            .partition(|instance| instance.installation.is_empty() || instance.installation == installation);
        self.strangers.clear();
        if !others.is_empty() {
            // Another installation may share this cluster: its instances are nodes here.
            let nodes: BTreeSet<&str> = snapshot.nodes.iter().filter_map(id_of).collect();
            let joins = |it: &&Instance| now.duration_since(it.launched_at) < STRANGE_AFTER;
            for other in others.iter().filter(|it| !joins(it) && !nodes.contains(it.provider_id.as_str())) {
                *self.strangers.entry(other.installation.clone()).or_default() += 1;
            }
        }
        Ok(ours)
    }

    /// That another cluster has the name of this one.
    pub fn notes_of_strangers(&self) -> Vec<Note> {
        let note = |(installation, count): (&String, &usize)| {
            let text = format!(
                "{} the name of this cluster, and {} no Node here: another cluster, of installation {installation}, has the same name. \
                 Nothing is done with them; give each cluster a name of its own, since nodes join the one that EKS has under it",
                if *count == 1 { "1 instance bears".to_owned() } else { format!("{count} instances bear") },
                if *count == 1 { "is" } else { "are" },
            );
            Note::new(NoteCode::ClusterNameShared, text)
        };
        self.strangers.iter().map(note).collect()
    }

    /// What a plan should show.
    pub fn notes(&self, prices: &Prices) -> Vec<Note> {
        let instances = self.held.iter().map(|(id, held)| Note::new(NoteCode::InstanceWithoutNodeClaim, format!(
                "instance {id} ({}) has no NodeClaim, {}: it is held, and ended when this was shown for {} minutes, one at a time, at most \
                 {PERCENT_AN_HOUR_MAX} % of all in an hour, and never while pods run on it",
                held.what.text(prices),
                held.why,
                INSTANCE_HELD.as_mins()
            )));
        let claims = self.vanished.keys().map(|name| {
            Note::new(
                NoteCode::NodeClaimWithoutInstance,
                format!(
                    "the cloud does not know the instance of NodeClaim {name}: it is held for a while, then removed"
                ),
            )
        });
        let adopted = self.adopted.iter().map(|(id, adopted)| {
            let text = format!(
                "instance {id} ({}) had no NodeClaim: it is adopted, as {}",
                adopted.what.text(prices),
                adopted.node_claim
            );
            Note::new(NoteCode::InstanceAdopted, text)
        });
        instances.chain(adopted).chain(claims).chain(self.notes_of_strangers()).collect()
    }

    /// Whether something is held or was adopted that no plan has shown.
    pub fn is_news(&self) -> bool {
        self.held.values().any(|held| held.shown_at.is_none()) || self.adopted.values().any(|it| !it.is_shown)
    }

    /// A plan with the notes was posted.
    pub fn shown(&mut self, now: Timestamp) {
        self.held.values_mut().for_each(|held| _ = held.shown_at.get_or_insert(now));
        self.adopted.values_mut().for_each(|adopted| adopted.is_shown = true);
    }

    /// Whether this leader may end something at this moment.
    fn may_end(&self, most: usize, now: Timestamp) -> bool {
        let is_new = self.looks_since.is_none_or(|since| now.duration_since(since) < NEW_LEADER);
        let just_ended = self.ended.back().is_some_and(|at| now.duration_since(*at) < INTERVAL);
        !is_new && !just_ended && self.ended.len() < most
    }

    async fn look_at_instances<K: Cluster, E: Cloud>(
        &mut self,
        found: &GarbageContext<'_, K, E>,
        (instances, most): (&[Instance], usize),
        aside: &mut SetAside,
        journal: &mut Journal,
    ) -> Result<bool, PortError> {
        let now = found.now;
        let claims = &found.view.snapshot.node_claims;
        let is_old = |instance: &&Instance| now.duration_since(instance.launched_at) >= YOUNGEST;
        let mut orphans: Vec<&Instance> = instances.iter().filter(|it| !is_known(it, claims.iter())).collect();
        orphans.retain(is_old);
        if orphans.is_empty() {
            self.held.clear();
            return Ok(false);
        }
        // As the API server has them, and not as they are seen.
        let claims = found.cluster.node_claims_now().await?;
        let nodes = found.cluster.nodes_now().await?;
        orphans.retain(|it| !is_known(it, claims.iter()));
        let ids: BTreeSet<&str> = orphans.iter().map(|it| it.provider_id.as_str()).collect();
        self.held.retain(|id, _| ids.contains(id.as_str()));
        let (mut wrote, mut adoptions) = (false, aside.purpose());
        for instance in orphans {
            let node = nodes.iter().find(|node| id_of(node) == Some(instance.provider_id.as_str()));
            let why = match adoption::claim_for(instance, node, found.node_pools, found.view, &claims) {
                Ok(claim) => {
                    let claim = of_claims::of_installation(claim, found.installation);
                    let object = format!("adoption of {}", instance.provider_id);
                    let adopted = adopt(found.cluster, instance, &claim, now, journal);
                    if adoptions.attempt(&object, now, adopted).await?.is_none() {
                        continue;
                    }
                    self.held.remove(&instance.provider_id);
                    let (what, node_claim) = (Found::of(instance), name_of(&claim).to_owned());
                    let adopted = Adopted { what, node_claim, at: now, is_shown: false };
                    self.adopted.insert(instance.provider_id.clone(), adopted);
                    wrote = true;
                    continue;
                }
                Err(why) => why,
            };
            let held = self.held.entry(instance.provider_id.clone()).or_insert_with(|| {
                journal.say(now, &Event::InstanceHeld { provider_id: instance.provider_id.clone(), why: why.clone() });
                Held { what: Found::of(instance), why: why.clone(), shown_at: None }
            });
            held.why = why;
            let is_due = held.shown_at.is_some_and(|shown_at| now.duration_since(shown_at) >= INSTANCE_HELD);
            let may_have_node = node.is_none() && nodes.iter().any(|node| may_be_of(node, instance));
            if is_due && !may_have_node && self.may_end(most, now) && !has_pods(found.cluster, node, now).await? {
                self.ended.push_back(now);
                self.held.remove(&instance.provider_id);
                unless_gone(found.cloud.terminate(&instance.provider_id).await)?;
                journal.say(now, &Event::GarbageCollected { provider_id: instance.provider_id.clone() });
            }
        }
        if wrote { Ok(true) } else { adoptions.told(false) }
    }

    async fn look_at_claims<K: Cluster, E: Cloud>(
        &mut self,
        found: &GarbageContext<'_, K, E>,
        (instances, most): (&[Instance], usize),
        aside: &mut SetAside,
        journal: &mut Journal,
    ) -> Result<bool, PortError> {
        let (now, view) = (found.now, found.view);
        let running: BTreeSet<&str> = instances.iter().map(|instance| instance.provider_id.as_str()).collect();
        let is_vanished = |claim: &&NodeClaim| {
            let ready = view.node_of(claim).is_some_and(crate::core::lifecycle::is_ready);
            claim.is_true(conditions::REGISTERED)
                && claim.metadata.deletion_timestamp.is_none()
                && !ready
                && provider_id(claim).is_some_and(|id| !running.contains(id))
        };
        let vanished: Vec<&NodeClaim> = view.snapshot.node_claims.iter().filter(is_vanished).collect();
        let names: BTreeSet<&str> = vanished.iter().map(|claim| name_of(claim)).collect();
        self.vanished.retain(|name, _| names.contains(name.as_str()));
        let mut ends = aside.purpose();
        for claim in vanished {
            let since = *self.vanished.entry(name_of(claim).to_owned()).or_insert(now);
            if now.duration_since(since) < CLAIM_HELD || !self.may_end(most, now) || is_ready_now(found, claim).await? {
                continue;
            }
            let deleted = found.cluster.delete_node_claim(name_of(claim), uid_of(claim));
            if ends.attempt(&format!("end of NodeClaim {}", name_of(claim)), now, deleted).await?.is_none() {
                continue;
            }
            self.ended.push_back(now);
            let provider_id = provider_id(claim).unwrap_or_default().to_owned();
            journal.say(now, &Event::InstanceVanished { node_claim: name_of(claim).to_owned(), provider_id });
            return Ok(true);
        }
        ends.told(false)
    }
}

/// Whether one of these claims is the instance's: because it says so, or because it waits for an instance of the same launch.
fn is_known<'a>(instance: &Instance, mut claims: impl Iterator<Item = &'a NodeClaim>) -> bool {
    claims.any(|claim| {
        let is_to_get_it = || provider_id(claim).is_none() && claim.launch_id() == instance.launch_id;
        is_to_get_it()
            || provider_id(claim) == Some(instance.provider_id.as_str())
            || adoption::adopts(claim) == Some(instance.provider_id.as_str())
    })
}

fn id_of(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

/// Whether a Node may be an instance's though it does not say so: what gives Nodes their provider IDs may be late, or away.
fn may_be_of(node: &Node, instance: &Instance) -> bool {
    let joined = node.metadata.creation_timestamp.as_ref().map(|time| time.0);
    id_of(node).is_none_or(str::is_empty) && joined.is_none_or(|joined| joined >= instance.launched_at)
}

async fn adopt<K: Cluster>(
    cluster: &K,
    instance: &Instance,
    claim: &NodeClaim,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), PortError> {
    match cluster.create_node_claim(claim).await {
        // It was adopted a moment ago.
        Err(error) if error.kind == PortErrorKind::Conflict => return Ok(()),
        created => created?,
    };
    let (provider_id, node_claim) = (instance.provider_id.clone(), name_of(claim).to_owned());
    journal.say(now, &Event::AdoptedInstance { provider_id, node_claim });
    Ok(())
}

async fn has_pods<K: Cluster>(cluster: &K, node: Option<&Node>, now: Timestamp) -> Result<bool, PortError> {
    let Some(node) = node else { return Ok(false) };
    let pods = cluster.pods_on_now(node_name(node)).await?;
    Ok(drain::next(&pods.iter().collect::<Vec<&Pod>>(), None, now).waiting > 0)
}

async fn is_ready_now<K: Cluster, E>(found: &GarbageContext<'_, K, E>, claim: &NodeClaim) -> Result<bool, PortError> {
    let nodes = found.cluster.nodes_now().await?;
    let node = nodes.iter().find(|node| id_of(node).is_some() && id_of(node) == provider_id(claim));
    Ok(node.is_some_and(crate::core::lifecycle::is_ready))
}

/// Whether some registered claim lost its node, which is worth looking at once.
pub fn is_urgent(view: &View<'_>) -> bool {
    view.snapshot.node_claims.iter().any(|claim| {
        claim.is_true(conditions::REGISTERED)
            && claim.metadata.deletion_timestamp.is_none()
            && view.node_of(claim).is_none()
    })
}
