//! The part of an account that launches: tokens, capacity, rates, answers that are lost, and a process that dies at any of its calls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use cutlist::adapters::aws::api::instances::{InstanceAnswer, InstanceState, StateChange, StateReason};
use cutlist::adapters::aws::api::launch::{FleetAnswer, FleetFailure, FleetInstances, FleetRequest, Override};
use cutlist::adapters::aws::api::{Action, ApiError, Filter, Tags};
use jiff::Timestamp;
use tokio::time::Instant;

/// What EC2 remembers of launches.
#[derive(Default)]
pub struct Fleets {
    /// How many there are left of a type in a zone in a capacity type, `m5.large a spot`; any number of what is not named.
    pub capacity: RefCell<BTreeMap<String, usize>>,
    /// Answers of calls of CreateFleet that are lost after EC2 did what they asked for, by their number from 0.
    pub lost: RefCell<Vec<usize>>,
    /// At the call with this number, of whatever action, the process dies: after it has been carried out, or before.
    pub dies_at: Cell<Option<(usize, bool)>>,
    /// Calls of CreateFleet in a second, and at once.
    pub rate: Cell<Option<(f64, f64)>>,
    /// Instances that calls of CreateFleet may ask for in a second, and at once.
    pub instance_rate: Cell<Option<(f64, f64)>>,
    /// So long after its launch an instance is not shown.
    pub hidden: Cell<Duration>,
    /// Code and message with which every instance that is launched from now on ends at once.
    pub ends: Cell<Option<(&'static str, &'static str)>>,
    /// Each call takes so long.
    pub latency: Cell<Duration>,
    pub instances: RefCell<Vec<(InstanceAnswer, Instant)>>,
    pub tokens: RefCell<BTreeMap<String, (FleetRequest, FleetAnswer)>>,
    made: Cell<usize>,
    fleets: Cell<usize>,
    lost_so_far: Cell<usize>,
    last_at: Cell<Option<Instant>>,
    level: Cell<Option<(f64, Instant)>>,
    instance_level: Cell<Option<(f64, Instant)>>,
}

impl Fleets {
    /// Every call waits here first.
    pub async fn begin(&self) {
        let number = self.made.get();
        self.made.set(number + 1);
        if !self.latency.get().is_zero() {
            tokio::time::sleep(self.latency.get()).await;
        }
        if self.dies_at.get() == Some((number, false)) {
            std::future::pending::<()>().await;
        }
    }

    /// And there before its answer.
    pub async fn end(&self) {
        if self.dies_at.get() == Some((self.made.get() - 1, true)) {
            std::future::pending::<()>().await;
        }
    }

    /// Calls of CreateFleet that were made so far.
    pub fn fleets(&self) -> usize {
        self.fleets.get()
    }

    /// Those whose answers were lost.
    pub fn lost_so_far(&self) -> usize {
        self.lost_so_far.get()
    }

    /// When the last of them was made.
    pub fn last_at(&self) -> Option<Instant> {
        self.last_at.get()
    }

    /// Calls of whatever action so far, as `dies_at` counts them.
    pub fn made(&self) -> usize {
        self.made.get()
    }

    /// Instances that run.
    pub fn running(&self) -> Vec<InstanceAnswer> {
        let all = self.instances.borrow();
        all.iter().map(|(instance, _)| instance).filter(|it| !it.state.is_ended()).cloned().collect()
    }

    pub fn shown(&self) -> Vec<InstanceAnswer> {
        let all = self.instances.borrow();
        let is_shown = |at: &Instant| at.elapsed() >= self.hidden.get();
        all.iter().filter(|(_, at)| is_shown(at)).map(|(instance, _)| instance.clone()).collect()
    }

    pub fn create(&self, request: &FleetRequest, now: Timestamp) -> Result<FleetAnswer, ApiError> {
        let number = self.fleets.get();
        self.fleets.set(number + 1);
        self.last_at.set(Some(Instant::now()));
        let fails = |code: &str| Err(ApiError::of(Action::CreateFleet, code, "as EC2 says it"));
        let takes_call = takes(self.rate.get(), &self.level, 1.0);
        if !takes_call || !takes(self.instance_rate.get(), &self.instance_level, f64::from(request.count)) {
            return fails("RequestLimitExceeded");
        }
        assert!(request.client_token.len() <= 64 && request.count > 0, "{request:?}");
        if let Some((before, answer)) = self.tokens.borrow().get(&request.client_token) {
            return if before == request { Ok(answer.clone()) } else { fails("IdempotentParameterMismatch") };
        }
        let answer = self.launch(request, now);
        self.tokens.borrow_mut().insert(request.client_token.clone(), (request.clone(), answer.clone()));
        if self.lost.borrow().contains(&number) {
            self.lost_so_far.set(self.lost_so_far.get() + 1);
            return Err(ApiError::of(Action::CreateFleet, "Timeout", "no answer in time"));
        }
        Ok(answer)
    }

    /// The first overrides by priority that there is capacity for; a failure for each that there is none of.
    fn launch(&self, request: &FleetRequest, now: Timestamp) -> FleetAnswer {
        let mut overrides: Vec<&Override> = request.configs.iter().flat_map(|config| &config.overrides).collect();
        overrides.sort_by_key(|it| it.priority);
        let mut answer = FleetAnswer::default();
        let mut lacking = request.count as usize;
        for one in overrides {
            let key = format!("{} {} {}", one.instance_type, one.zone, request.capacity_type);
            let mut capacity = self.capacity.borrow_mut();
            let left = capacity.get(&key).copied().unwrap_or(usize::MAX);
            let count = lacking.min(left);
            if let Some(known) = capacity.get_mut(&key) {
                *known -= count;
            }
            if count > 0 {
                lacking -= count;
                let ids: Vec<String> = (0..count).map(|_| self.instance(request, one, now)).collect();
                answer.instances.push(FleetInstances {
                    ids,
                    instance_type: Some(one.instance_type.clone()),
                    zone: Some(one.zone.clone()),
                    subnet_id: Some(one.subnet_id.clone()),
                    image_id: Some(one.image_id.clone()),
                });
            }
            if left < usize::MAX && left == count {
                answer.failures.push(FleetFailure {
                    code: "InsufficientInstanceCapacity".to_owned(),
                    message: "there is none".to_owned(),
                    instance_type: Some(one.instance_type.clone()),
                    zone: Some(one.zone.clone()),
                    subnet_id: Some(one.subnet_id.clone()),
                });
            }
        }
        answer
    }

    fn instance(&self, request: &FleetRequest, one: &Override, now: Timestamp) -> String {
        let mut all = self.instances.borrow_mut();
        // Ids come in no order.
        let id = format!("i-{:04x}", (all.len() * 40_503 + 7) % 65_536);
        let instance = InstanceAnswer {
            id: id.clone(),
            state: InstanceState::Pending,
            instance_type: one.instance_type.clone(),
            zone: one.zone.clone(),
            image_id: one.image_id.clone(),
            launched_at: now,
            tags: request.tags.clone(),
            lifecycle: (request.capacity_type == "spot").then(|| "spot".to_owned()),
            spot_request_id: None,
            reservation_id: None,
            reservation_preference: None,
            subnet_id: Some(one.subnet_id.clone()),
            security_groups: Vec::new(),
            state_reason: None,
            vcpus: None,
        };
        let ended = self.ends.get().map(|(code, message)| InstanceAnswer {
            state: InstanceState::Terminated,
            state_reason: Some(StateReason { code: code.to_owned(), message: message.to_owned() }),
            ..instance.clone()
        });
        all.push((ended.unwrap_or(instance), Instant::now()));
        id
    }

    pub fn terminate(&self, ids: &[String]) -> Result<Vec<StateChange>, ApiError> {
        let mut all = self.instances.borrow_mut();
        if let Some(id) = ids.iter().find(|id| !all.iter().any(|(it, _)| it.id == **id)) {
            return Err(ApiError::of(Action::TerminateInstances, "InvalidInstanceID.NotFound", id.clone()));
        }
        let mut changes = Vec::new();
        for (instance, _) in all.iter_mut().filter(|(it, _)| ids.contains(&it.id)) {
            instance.state = match instance.state {
                InstanceState::Terminated | InstanceState::ShuttingDown => InstanceState::Terminated,
                _ => InstanceState::ShuttingDown,
            };
            changes.push(StateChange { id: instance.id.clone(), state: instance.state });
        }
        Ok(changes)
    }

    pub fn tag(&self, resources: &[String], tags: &Tags) {
        for (instance, _) in self.instances.borrow_mut().iter_mut().filter(|(it, _)| resources.contains(&it.id)) {
            instance.tags.extend(tags.clone());
        }
    }
}

/// Whether a bucket has so much, which is taken then.
fn takes(rate: Option<(f64, f64)>, kept: &Cell<Option<(f64, Instant)>>, wanted: f64) -> bool {
    let Some((rate, most)) = rate else { return true };
    let (level, at) = kept.get().unwrap_or((most, Instant::now()));
    let level = (level + at.elapsed().as_secs_f64() * rate).min(most);
    let is_enough = level >= wanted;
    kept.set(Some((if is_enough { level - wanted } else { level }, Instant::now())));
    is_enough
}

/// Whether a listed template passes.
pub fn names_template(filters: &[Filter], name: &str) -> bool {
    let by_name = filters.iter().filter(|filter| filter.name == "launch-template-name");
    by_name.flat_map(|filter| &filter.values).all(|value| name.starts_with(value.trim_end_matches('*')))
}
