//! EC2 as the controller asks it: the port over any [`Ec2Api`], so that everything that decides is built and tested without the SDK.
//!
//! Rooms: `classes` is what is known of EC2NodeClasses, `launches` makes instances of claims, `fleet_failures` reads what was refused,
//! `templates` keeps launch templates, `ends` ends instances, `names` writes names on them, `profiles` sweeps instance profiles, `queue` hears
//! what EC2 announces, `statuses` asks which instances fail, `quotas` is how much the account may have, `denials` what it does not allow,
//! `permissions` whether launches would be allowed, `opening` is the first look, `pace` makes calls as fast as EC2 takes them, `pieces` divides what is too much at once.

mod classes;
mod denials;
mod ends;
mod fleet_failures;
mod launches;
mod names;
mod opening;
mod pace;
mod permissions;
mod pieces;
mod profiles;
mod queue;
mod quotas;
mod statuses;
mod templates;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use jiff::Timestamp;

use super::addresses::Addresses;
use super::api::Ec2Api;
use super::api::instances::InstanceAnswer;
use super::catalog::LiveCatalog;
use super::instances::{self, Ended, instance_id};
use super::resolution::cluster::Identity;
use super::shortages::{Scarce, Shortages};
use crate::api::cloud_facts::{DeniedPermission, VcpuQuotaUse};
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::catalog::Catalog;
use crate::core::catalog::vcpu_quotas::code_of;
use crate::core::plan::{EndCause, Note, NoteCode};
use crate::ports::{
    ClassFacts, Clock, Cloud, Instance, InstanceEnd, LaunchFailure, LaunchRequest, Message, Offering, PortError,
    PortErrorKind, is_to_come, not_to_come,
};

use classes::Classes;
use denials::Denials;
use ends::Ends;
use launches::Remembrances;
use names::Names;
pub use opening::Opening;
use pace::Pace;
use permissions::Permissions;
use profiles::Profiles;
pub use queue::Ears;
use queue::Queue;
use quotas::Quotas;
use statuses::Statuses;
use templates::Templates;

/// Whose nodes are launched, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    pub identity: Identity,
    /// The name of the queue to which EventBridge sends what EC2 announces, if there is one.
    pub queue: Option<String>,
    /// Whether anything may be made or changed in the account. Who observes only looks.
    pub may_write: bool,
    /// Whether it is tried all the same if launches would be allowed, by calls that launch nothing.
    pub tries_launches: bool,
}

/// EC2 in one region, for one cluster. `P` leads to the calls, so that others may count them.
#[derive(Debug)]
pub struct AwsCloud<P, C> {
    api: P,
    settings: Settings,
    started_at: Mutex<Timestamp>,
    pace: Pace<C>,
    catalog: tokio::sync::Mutex<LiveCatalog>,
    market: Mutex<Market>,
    classes: Classes,
    templates: Templates,
    addresses: Mutex<Addresses>,
    launches: Mutex<Remembrances>,
    /// By launch: who carries it out now.
    turns: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
    ends: Ends,
    names: Names,
    queue: Queue,
    quotas: Quotas,
    denials: Denials,
    permissions: Permissions,
    profiles: Profiles,
    statuses: Statuses,
}

/// What there is none of at present.
#[derive(Debug, Default)]
struct Market {
    shortages: Shortages,
    /// The catalog without it, what that was made of, and until when it holds.
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    of: Arc<Catalog>,
    catalog: Arc<Catalog>,
    at: Timestamp,
    until: Option<Timestamp>,
}

impl Made {
    /// Also by a clock that was set back since.
    fn holds(&self, now: Timestamp) -> bool {
        !is_to_come(self.at, now) && self.until.is_none_or(|until| now < until)
    }
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> AwsCloud<P, C> {
    /// Calls nothing yet.
    pub fn new(api: P, clock: C, settings: Settings) -> Self {
        let Identity { region, installation, .. } = &settings.identity;
        let catalog = LiveCatalog::new(region, installation);
        let classes = Classes::new(settings.identity.clone(), settings.may_write);
        let queue = Queue::new(settings.queue.clone());
        let started_at = clock.now();
        Self {
            api,
            started_at: Mutex::new(started_at),
            pace: Pace::new(clock),
            catalog: tokio::sync::Mutex::new(catalog),
            market: Mutex::default(),
            classes,
            templates: Templates::default(),
            addresses: Mutex::default(),
            launches: Mutex::default(),
            turns: Mutex::default(),
            ends: Ends::default(),
            names: Names::default(),
            queue,
            quotas: Quotas::default(),
            denials: Denials::default(),
            permissions: Permissions::new(settings.tries_launches),
            profiles: Profiles::new(started_at),
            statuses: Statuses::default(),
            settings,
        }
    }

    /// The calls themselves.
    pub fn api(&self) -> &P::Target {
        &self.api
    }

    /// Who listens to the queue of what EC2 announces: without it none of that is heard. Who only observes acts on nothing of it.
    pub fn ears(&self) -> Ears<P, C>
    where
        P: Clone,
        C: Clone,
    {
        let queue = self.settings.may_write.then(|| self.queue.clone());
        Ears { api: self.api.clone(), clock: self.pace.clock().clone(), queue }
    }

    /// What is not as it is now, or could not be asked, for people: each once, in an order that stays.
    pub async fn troubles(&self) -> Vec<String> {
        let doubts = self.catalog.lock().await.doubts();
        let mut troubles: Vec<String> = doubts.into_iter().map(|doubt| doubt.text).collect();
        troubles.extend(self.classes.troubles().await);
        troubles.extend(self.quotas.troubles().await);
        if let Some(trouble) = self.queue.trouble() {
            troubles.push(format!("what EC2 announces is not heard: {trouble}"));
        }
        if let Some(trouble) = self.statuses.trouble().await {
            troubles.push(format!("which instances fail is not known: {trouble}"));
        }
        troubles
    }

    /// What EC2 sells, whether or not there is any of it.
    async fn base_catalog(&self) -> Result<Arc<Catalog>, PortError> {
        let mut catalog = self.catalog.lock().await;
        catalog.refresh(self.api(), self.pace.now()).await;
        catalog.catalog().map_err(|error| PortError {
            operation: "read what EC2 sells".to_owned(),
            kind: PortErrorKind::Permanent,
            source: Some(Box::new(error)),
        })
    }

    /// Since when this process looks. By a clock that was set back, since then: who waits for it would wait for as long as that went back.
    fn looks_since(&self, now: Timestamp) -> Timestamp {
        let mut started_at = self.started_at.lock().unwrap_or_else(PoisonError::into_inner);
        *started_at = not_to_come(*started_at, now);
        *started_at
    }

    fn ran_out(&self, what: Scarce, code: &str) {
        let now = self.pace.now();
        let mut market = self.market.lock().unwrap_or_else(PoisonError::into_inner);
        market.made = None;
        market.shortages.met(what, code, now);
    }

    /// It was launched.
    fn is_there(&self, offering: Offering) {
        let now = self.pace.now();
        let mut market = self.market.lock().unwrap_or_else(PoisonError::into_inner);
        let what = Scarce::Offering(offering);
        if market.shortages.of(&what, now).is_some() {
            market.made = None;
        }
        market.shortages.launched(&what);
    }

    fn with_addresses<T>(&self, work: impl FnOnce(&mut Addresses) -> T) -> T {
        work(&mut self.addresses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn with_launches<T>(&self, work: impl FnOnce(&mut Remembrances) -> T) -> T {
        work(&mut self.launches.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One at a time carries out a launch.
    fn turn_of(&self, launch_id: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = turns.get(launch_id).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        turns.insert(launch_id.to_owned(), Arc::downgrade(&turn));
        turn
    }
}

fn offering_of(instance: &InstanceAnswer) -> Offering {
    Offering {
        instance_type: instance.instance_type.clone(),
        zone: instance.zone.clone(),
        capacity_type: instances::capacity_type(instance).to_owned(),
    }
}

fn name_of(claim: &NodeClaim) -> &str {
    claim.metadata.name.as_deref().unwrap_or_default()
}

impl<P: Deref<Target: Ec2Api + Sized>, C: Clock> Cloud for AwsCloud<P, C> {
    /// What ran out lately is shown as unavailable, until it may be tried again.
    async fn catalog(&self) -> Result<Arc<Catalog>, PortError> {
        let base = self.base_catalog().await?;
        let now = self.pace.now();
        let mut market = self.market.lock().unwrap_or_else(PoisonError::into_inner);
        market.shortages.sweep(now);
        if let Some(made) = &market.made
            && Arc::ptr_eq(&made.of, &base)
            && made.holds(now)
        {
            return Ok(made.catalog.clone());
        }
        let until = market.shortages.next_retry(now);
        let catalog = if until.is_none() {
            base.clone()
        } else {
            let mut changed = base.as_ref().clone();
            let is_other = market.shortages.apply(&mut changed, code_of, now);
            if is_other { Arc::new(changed) } else { base.clone() }
        };
        market.made = Some(Made { of: base, catalog: catalog.clone(), at: now, until });
        Ok(catalog)
    }

    async fn describe(&self, class: &EC2NodeClass) -> Result<ClassFacts, PortError> {
        let catalog = self.base_catalog().await?;
        let types = &catalog.instance_types;
        Ok(self.classes.describe(self.api(), class, types, &self.addresses, self.pace.now()).await)
    }

    async fn launch(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        let answers = self.launch_all(request).await;
        let launched = answers.iter().flatten().filter_map(|instance| instance_id(&instance.provider_id));
        self.ends.launched(launched, self.pace.now());
        let reserved = request.claims.iter().zip(&answers).filter_map(|(claim, answer)| {
            let reservation = claim.metadata.labels.as_ref()?.get(keys::CAPACITY_RESERVATION_ID)?;
            Some((instance_id(&answer.as_ref().ok()?.provider_id)?, reservation.as_str()))
        });
        self.classes.launched(reserved, self.pace.now()).await;
        // Without it there is no answer.
        if let Ok(catalog) = self.base_catalog().await {
            self.quotas.launched(answers.iter().flatten(), &catalog.instance_types, self.pace.now());
        }
        answers
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), PortError> {
        let operation = format!("terminate {provider_id}");
        let Some(id) = instance_id(provider_id) else {
            return Err(PortError { operation, kind: PortErrorKind::NotFound, source: None });
        };
        self.ends
            .end(self.api(), &self.pace, &self.settings.identity, id)
            .await
            .map_err(|error| error.into_port(operation))?;
        self.quotas.ended(id);
        Ok(())
    }

    /// Those that run, or may run again. They are named, and launch templates and instance profiles that nothing uses are swept, on the way.
    async fn instances(&self) -> Result<Vec<Instance>, PortError> {
        let asked_at = self.pace.now();
        let listed = instances::list(self.api(), &self.settings.identity).await;
        let listed = listed.map_err(|error| error.into_port("list the instances of the cluster"))?;
        self.are_shown(&listed, asked_at);
        if self.settings.may_write {
            let identity = &self.settings.identity;
            self.templates.sweep(self.api(), &self.pace, identity).await;
            let wanted = self.classes.wanted_profiles(asked_at).await;
            self.profiles.sweep(self.api(), identity, &wanted, &listed, asked_at).await;
        }
        Ok(listed.iter().filter(|instance| !instance.state.is_ended()).map(instances::to_port).collect())
    }

    /// EC2 shows an instance for about an hour after its end. What it had too little of is remembered for all.
    async fn ended(&self, provider_ids: &[&str]) -> Result<Vec<InstanceEnd>, PortError> {
        let ids = provider_ids.iter().filter_map(|id| instance_id(id)).map(str::to_owned).collect();
        let found = instances::by_ids(self.api(), &ids).await;
        let found = found.map_err(|error| error.into_port("see how instances are that have not joined"))?;
        for instance in &found {
            if let Some(Ended { cause: EndCause::Capacity, code, .. }) = instances::ended(instance) {
                self.ran_out(Scarce::Offering(offering_of(instance)), &code);
            }
        }
        Ok(found.iter().filter_map(instances::end_to_port).collect())
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        Ok(self.queue.heard())
    }

    /// Instances are named on the way.
    async fn failing(&self) -> Result<Vec<Message>, PortError> {
        // Who only observes ends nothing, whatever is the matter with it.
        if !self.settings.may_write {
            return Ok(Vec::new());
        }
        self.names.write(self.api(), &self.pace).await;
        Ok(self.statuses.messages(self.api(), self.pace.now()).await)
    }

    async fn notes(&self) -> Vec<Note> {
        let note = |code: NoteCode| move |text: String| Note::new(code, text);
        let short = {
            let market = self.market.lock().unwrap_or_else(PoisonError::into_inner);
            market.shortages.texts(self.pace.now())
        };
        let troubles = self.troubles().await.into_iter().map(note(NoteCode::CloudNotKnown));
        troubles.chain(short.into_iter().map(note(NoteCode::InsufficientCapacity))).collect()
    }

    async fn vcpu_quotas(&self) -> Vec<VcpuQuotaUse> {
        // Without it nothing is planned either, and the controller says why.
        let Ok(catalog) = self.base_catalog().await else { return Vec::new() };
        self.quotas.now(self.api(), &catalog.instance_types, self.pace.now()).await
    }

    async fn denied(&self) -> Vec<DeniedPermission> {
        self.permissions.denied(self.api(), &self.settings.identity, self.pace.now()).await;
        self.denials.now(self.api()).await
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        if statuses::is_of_status(receipt) {
            return Ok(());
        }
        let forgotten = self.queue.forget(self.api(), receipt).await;
        forgotten.map_err(|error| error.into_port("take a message off the queue"))
    }
}
