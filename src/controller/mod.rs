//! RUN. Observe, plan, post, gate, apply, record: generic over the ports.
//!
//! [`Controller::pass`] looks at everything once and does what can be done at this moment; [`Controller::wait`] sleeps until
//! another look may find something. All state that matters is in the cluster, so a controller may be dropped between any
//! two calls and another one goes on.
//!
//! Its rooms in their order: each uses those before it, and no other, except for what stands on this page.
//!
//! | what | where |
//! |---|---|
//! | who must have signed what | `signing/` |
//! | what is said, and to whom | `events/`: `mod.rs`, `levels.rs`, `nodes.rs`, `revisions.rs`, `journal.rs`, `refusal.rs`; for the cluster and operators `kubernetes_events.rs`, `metrics.rs` |
//! | what is written on objects and read again | `annotations/`: `of_claims.rs`, `of_definitions.rs` |
//! | looking things up in what is seen | `observed/view.rs` |
//! | what another installation made | `observed/others.rs` |
//! | one more look before something ends | `observed/afresh.rs` |
//! | the one door through which the cluster is seen | `observed/look.rs` |
//! | what is not seen as it is, or contradicts itself | `observed/doubted.rs`, `doubled.rs` |
//! | what somebody else has not let go | `observed/kept_by_others.rs` |
//! | a revision comes: lint, use or refuse it | `revisions/mod.rs`, `unsigned.rs` |
//! | definitions whose names another installation has | `revisions/of_others.rs` |
//! | definitions into the cluster and out of it | `revisions/inventory.rs` |
//! | from definitions to what a plan is made from | `revisions/inputs.rs`, `facts.rs` |
//! | conditions and progress of pools and classes | `revisions/statuses.rs`, `class_conditions.rs` |
//! | each NodeClaim's life | `claims/`: `mod.rs`, `effects.rs`, `launches.rs`; decisions: `core::lifecycle` |
//! | pods of nodes that go: whose turn it is, what budgets allow | `claims/evictions.rs`, `eviction_order.rs` |
//! | pods told to kube-scheduler before their nodes open, in its order | `claims/opening.rs`, `queue.rs` |
//! | what EC2 announces | `claims/interruptions.rs` |
//! | new nodes that did not become ready, a rollout halted | `claims/rollouts.rs` |
//! | new nodes that kube-scheduler refused their pods | `claims/refused_nodes.rs`; decisions: `core::provision::refused_nodes` |
//! | instances that end before their nodes join | `claims/early_ends.rs`; decisions: `core::lifecycle::early_ends` |
//! | instances without claims, claims without instances | `claims/garbage.rs`, `adoption.rs` |
//! | what the cloud says of running instances, for drift | `claims/live_instances.rs` |
//! | moves under way, finished or rolled back | `moves/mod.rs` |
//! | one move begun, its preconditions checked | `moves/apply.rs` |
//! | what another controller began and left | `moves/abandoned.rs` |
//! | which moves may go without asking | `moves/gate.rs` |
//! | when to plan, and the way of a plan | `plans/planning.rs` |
//! | whose turn it is, where beginnings are refused | `plans/beginning.rs` |
//! | pods collected before they are planned for | `plans/batch.rs` |
//! | whether another plan could say anything else, or says something new | `plans/inputs_seen.rs`, `shown.rs` |
//! | plans that wait for an approval, and whose counts | `plans/approvals.rs`, `waiting.rs` |
//! | what is remembered of plans and approvals from one look to the next | `plans/memory.rs` |
//! | what a plan came to, on its `NodePlan` object; what waits for that; what is left of it later | `plans/records.rs`, `noting.rs`, `fidelity.rs`, `history.rs` |
//! | what a change would do that nobody made yet | `preview/` |
//! | pull requests: previews, commands, approvals, what came of them | `reviews/` |
//! | what people elsewhere are told, each once | `notifications/`: `outbox.rs`, `telling.rs` |
//! | what is refused of one object, while the others go on | `set_aside.rs` |
//! | how many looks may follow each other, and after a failure, and when to stop | `pace.rs`, `shutdown.rs` |

mod annotations;
mod claims;
mod cloud_answers;
pub mod events;
mod moves;
pub mod notifications;
mod observed;
mod pace;
mod plans;
pub mod preview;
pub mod reviews;
mod revisions;
mod set_aside;
mod shutdown;
pub mod signing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::approval_rules::ApprovalRules;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::settings::Settings;
use crate::api::source::SourceFile;
use crate::core::inputs::Inputs;
use crate::core::offer::OverlaidOffer;
use crate::core::plan::{Note, Plan, Revision};
use crate::core::snapshot::Snapshot;
use crate::definitions::Definitions;
use crate::ports::{Clock, Cloud, Cluster, Forge, LaunchRules, PortError, Repository, chain};

use claims::garbage::{self, Garbage, GarbageContext};
use claims::rollouts::Noted;
use claims::{Claims, Surroundings, early_ends, interruptions};
use cloud_answers::CloudAnswers;
use events::{Event, Fleet};
use observed::doubted::Doubted;
use observed::kept_by_others;
use observed::look::Eyes;
use observed::others::Others;
use observed::view::{NodePrices, Prices, View};
use pace::{CATALOG_AGE, POLL, Pace, RETRY, Troubles, longer};
use plans::approvals::{Approved, Waiting};
use plans::batch::BatchWindow;
use plans::inputs_seen::InputsSeen;
use plans::memory::{ApprovalMemory, PlanMemory};
use revisions::class_conditions::ClassConditions;
use revisions::{Revisions, inputs, statuses};
use set_aside::SetAside;

pub use events::journal::Journal;
pub use events::refusal::MoveRefusal;
pub use revisions::{facts, of_another_cluster};
pub use shutdown::Shutdown;

/// The ports.
pub struct Ports<R, K, E, F, C> {
    pub repository: R,
    pub cluster: K,
    pub cloud: E,
    pub forge: F,
    pub clock: C,
}

/// Files of a revision to definitions.
pub type ReadDefinitions = dyn Fn(&[SourceFile]) -> Definitions;

/// Inputs to a plan.
pub type Planner = dyn Fn(&Inputs<'_>) -> Plan;

/// How far a controller goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Plans and posts; changes nothing but its own records.
    Observe,
    /// Carries plans out.
    #[default]
    Enforce,
}

/// The installation of a world in memory, where there is no other.
pub const EMBEDDED_INSTALLATION: &str = "embedded";

/// What the controller is told once.
pub struct Options {
    pub mode: Mode,
    /// Whether definitions are brought into the cluster and pruned from it. Not where Argo CD or Flux does that.
    pub applies_definitions: bool,
    /// How often the lease had changed hands when this process got it; `None` without an election.
    pub lease_transitions: Option<i64>,
    /// Which installation of Cutlist this is. What another one made is not touched. Said by who operates it, never by the definitions.
    pub installation: String,
    /// What the operator calls the cluster, where that is said: a revision that names another one is not used.
    pub cluster_name: Option<String>,
    /// Where nodes are launched, which is chosen once: a revision that names another region is not used. `None`: it is not asked.
    pub region: Option<String>,
    /// What is asked about whatever the settings say.
    pub approval_floor: ApprovalRules,
    /// Whether a revision that is older than the one in force is used, as when somebody goes back.
    pub allows_older_revisions: bool,
    /// Reads the files of a revision; knows the variables.
    pub read: Box<ReadDefinitions>,
    pub seed: u64,
    /// `core::planner::decide`, or another planner in tests.
    pub planner: Box<Planner>,
}

/// The loop's state; everything in it can be lost.
pub struct Controller<R, K, E, F, C> {
    ports: Ports<R, K, E, F, C>,
    options: Options,
    journal: Journal,
    shutdown: Shutdown,
    revisions: Revisions,
    claims: Claims,
    failures: Noted,
    plans: PlanMemory,
    approvals: ApprovalMemory,
    doubted: Doubted,
    catalog: Option<CloudAnswers>,
    class_conditions: ClassConditions,
    set_aside: SetAside,
    fleet: Fleet,
    troubles: Troubles,
    repository_due: bool,
    garbage: Garbage,
    early_ends: early_ends::Watch,
    wake_at: Option<Timestamp>,
    pace: Pace,
    settled: bool,
}

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    pub fn new(ports: Ports<R, K, E, F, C>, options: Options, journal: Journal, shutdown: Shutdown) -> Self {
        let plans = PlanMemory::of_installation(&options.installation);
        Self {
            ports,
            options,
            journal,
            shutdown,
            revisions: Revisions::default(),
            claims: Claims::default(),
            failures: Noted::default(),
            plans,
            approvals: ApprovalMemory::default(),
            doubted: Doubted::default(),
            catalog: None,
            class_conditions: ClassConditions::default(),
            set_aside: SetAside::default(),
            fleet: Fleet::default(),
            troubles: Troubles::default(),
            repository_due: true,
            garbage: Garbage::default(),
            early_ends: early_ends::Watch::default(),
            wake_at: None,
            pace: Pace::default(),
            settled: false,
        }
    }

    /// Looks and acts until a stop is requested.
    pub async fn run(&mut self) {
        while !self.shutdown.is_requested() {
            self.pass().await;
            self.wait().await;
        }
    }

    /// Looks at everything once and does what can be done now. A call that fails is said and tried again soon.
    pub async fn pass(&mut self) {
        self.settled = false;
        self.troubles.some_failed = false;
        let now = self.ports.clock.now();
        if self.pace.was_set_back(now) {
            self.begin_anew();
        }
        self.pace.look(now);
        self.set_aside.look(now);
        self.wake_at = None;
        if let Err(error) = self.look(now).await {
            let never_read = self.ports.cluster.never_read();
            if never_read.is_empty() {
                self.say_trouble(chain(&error), now);
            } else {
                self.doubted.tell(&never_read, now, &mut self.journal);
            }
            let again_at = self.troubles.look_again_at(&error, now);
            self.wake(again_at);
        } else if !self.troubles.some_failed {
            self.troubles.look_again_in = RETRY;
        }
        let left = self.set_aside.again_at(now);
        self.wake(left);
        self.settled &= !self.troubles.some_failed && left.is_none();
    }

    /// Forgets what was noted by a clock that was set back since, and would be waited for: it can be lost, as when a process ends.
    fn begin_anew(&mut self) {
        self.claims = Claims::default();
        self.plans.batch = BatchWindow::default();
        self.garbage.begin_anew();
        self.early_ends = early_ends::Watch::default();
        self.set_aside = SetAside::default();
        self.troubles.forget();
        self.catalog = None;
        (self.plans.due_at, self.plans.searched_at, self.garbage.due_at) = (None, None, None);
    }

    /// The same trouble is said once in a while, not at every attempt.
    fn say_trouble(&mut self, error: String, now: Timestamp) {
        if self.troubles.is_news(&error, now) {
            self.journal.say(now, &Event::CallFailed { error });
        }
    }

    /// Whether the last pass found nothing under way and nothing that only time would bring.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Since when looks have followed each other as fast as they may: something is done again and again.
    pub fn unsettled_since(&self) -> Option<Timestamp> {
        self.pace.limited_since()
    }

    /// The revision that was received last, whether or not it is used.
    pub fn last_revision(&self) -> Option<&Revision> {
        self.revisions.received.as_ref()
    }

    /// Why nothing comes of it before it is made anew: the first revision that may be used is for another region.
    pub fn must_begin_anew(&self) -> Option<&str> {
        self.revisions.begins_anew.as_deref()
    }

    /// Lets the moves of the plan that waits go ahead, if it is this one (or begins with this).
    pub fn approve(&mut self, plan_id: &str) -> bool {
        let is_meant = |waiting: &Waiting| !plan_id.is_empty() && waiting.plan.id.starts_with(plan_id);
        self.approvals.approved =
            self.approvals.waiting.as_ref().filter(|waiting| is_meant(waiting)).map(|_| Approved::default());
        self.approvals.approved.is_some()
    }

    /// Waits until something changed, a time came, or a stop was requested.
    pub async fn wait(&mut self) {
        let now = self.ports.clock.now();
        let too_early = Duration::try_from(self.pace.pause(now)).unwrap_or_default();
        if !too_early.is_zero() {
            tokio::select! {
                biased;
                () = self.shutdown.requested() => return,
                () = tokio::time::sleep(too_early) => {}
            }
        }
        let now = self.ports.clock.now();
        let pause = self.wake_at.map(|moment| self.pace.wait_for(moment, now));
        let pause = pause.map(|pause| Duration::try_from(pause).unwrap_or_default());
        let sleep = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.shutdown.requested() => {}
            () = self.ports.cluster.changed() => {}
            () = self.ports.repository.changed() => self.repository_due = true,
            () = self.ports.cloud.changed() => self.cloud_answered(),
            () = sleep => {}
        }
    }

    async fn look(&mut self, now: Timestamp) -> Result<(), PortError> {
        if std::mem::take(&mut self.repository_due) {
            self.poll_repository(now).await?;
        }
        let (mut snapshot, others) = self.eyes().look(&self.ports.cluster).await?;
        self.set_others_aside(&mut snapshot, &others, now).await;
        self.doubted.tell(&snapshot.doubts, now, &mut self.journal);
        kept_by_others::sentences(&snapshot, now).into_iter().for_each(|sentence| self.say_trouble(sentence, now));
        let view = View::new(&snapshot);
        if let Err(error) = self.refresh_catalog(&snapshot, now).await {
            // What was said last stands: what the cluster needs does not wait for the cloud.
            if self.catalog.is_none() {
                return Err(error);
            }
            self.try_again(&[error], now);
        }
        let Some(known) = &self.catalog else { return Ok(()) };
        let overlaid = self.overlaid_offer(&snapshot, now);
        let fleet = view.fleet(NodePrices { of_catalog: &known.prices, overlaid: &overlaid });
        if fleet != self.fleet {
            self.fleet = fleet;
            self.journal.say(now, &Event::FleetChanged { fleet });
        }

        let wrote = self.options.mode == Mode::Enforce && self.go_on(&snapshot, &view, &overlaid, now).await?;
        // After a write this view is old; the change wakes the next look.
        let is_due = !wrote && self.is_plan_due(&view, now);
        drop(view);
        if !is_due {
            return Ok(());
        }
        if self.options.mode == Mode::Observe {
            self.see_instances(&snapshot, now).await;
            let snapshot = self.with_answers(snapshot);
            return self.plan(snapshot, now).await;
        }
        if self.mark_drift(&snapshot, now).await? {
            self.plans.due_at = Some(now);
            self.wake(self.plans.due_at);
            return Ok(());
        }
        self.plan(snapshot, now).await
    }

    fn eyes(&self) -> Eyes<'_> {
        Eyes { installation: &self.options.installation, definitions: self.revisions.definitions() }
    }

    /// Sets aside what another installation has in the cluster, and says it. What was planned without that is planned anew.
    async fn set_others_aside(&mut self, snapshot: &mut Arc<Snapshot>, others: &Others, now: Timestamp) {
        let Some(in_force) = &mut self.revisions.in_force else { return };
        let is_change = in_force.of_others.set_aside(&mut in_force.definitions, others);
        if in_force.of_others.hides_something(snapshot) {
            in_force.of_others.hide(Arc::make_mut(snapshot));
        }
        let notes = in_force.of_others.notes(&self.options.installation);
        if is_change {
            // What was brought back is not in the cluster yet.
            in_force.applied = false;
            self.plans.inputs_seen = InputsSeen::default();
            self.plans.due_at = Some(now);
            if let Err(error) = self.supersede_waiting(MoveRefusal::OtherPlan, now).await {
                self.say_trouble(chain(&error), now);
            }
        }
        notes.into_iter().for_each(|note| self.say_trouble(note.text, now));
    }

    /// Who acts sees the instances that run when it looks for garbage. Who only observes looks for this alone.
    async fn see_instances(&mut self, snapshot: &Snapshot, now: Timestamp) {
        if self.garbage.due_at.is_some_and(|due| now < due) {
            return;
        }
        self.garbage.due_at = now.saturating_add(garbage::INTERVAL).ok();
        let known = self.garbage.live.known(now);
        let strangers = self.garbage.notes_of_strangers();
        let whose = (&self.ports.cloud, self.options.installation.as_str());
        if let Err(error) = self.garbage.see(whose, snapshot, now).await {
            self.garbage.due_at = now.saturating_add(self.next_list()).ok();
            self.say_trouble(chain(&error), now);
        }
        self.tell_of_strangers(&strangers, now);
        if self.garbage.live.known(now) != known {
            self.plans.inputs_seen = InputsSeen::default();
        }
    }

    /// That another cluster has the name of this one: in the next plan as well.
    fn tell_of_strangers(&mut self, before: &[Note], now: Timestamp) {
        let notes = self.garbage.notes_of_strangers();
        if notes != before {
            self.plans.inputs_seen = InputsSeen::default();
        }
        notes.into_iter().for_each(|note| self.say_trouble(note.text, now));
    }

    /// When instances are listed again after a list that failed: it may be about to come.
    fn next_list(&self) -> SignedDuration {
        if self.ports.cloud.is_asking() { garbage::URGENT_APART } else { garbage::INTERVAL }
    }

    /// An answer came that nobody waited for: what asked in vain asks once more.
    fn cloud_answered(&mut self) {
        if let Some(known) = self.catalog.as_mut().filter(|known| known.is_old) {
            known.until = known.made_at;
        }
    }

    /// The cluster as it would be where the answers of the cloud stood in its EC2NodeClasses: who only observes does not write them there.
    fn with_answers(&self, mut snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        let Some(known) = &self.catalog else { return snapshot };
        let asked = self.revisions.node_classes(&snapshot);
        let answered = statuses::answered(
            &asked,
            &snapshot,
            |name| known.classes.get(name).map(|(_, facts)| facts),
            known.made_at,
        );
        if !answered.is_empty() {
            facts::overlay(Arc::make_mut(&mut snapshot), &answered);
        }
        snapshot
    }

    /// Plans. Where a plan could not be posted or carried out, or its definitions not applied, it is made again
    /// before the poll: at once at first, ever less often where it goes on being refused.
    async fn plan(&mut self, snapshot: Arc<Snapshot>, now: Timestamp) -> Result<(), PortError> {
        let due_before = self.plans.due_at;
        let planned = self.plan_now(snapshot, now).await;
        if let Err(error) = &planned {
            self.plans.inputs_seen = InputsSeen::default();
            self.plans.due_at = now.saturating_add(self.plans.again_in).ok();
            self.wake(self.plans.due_at);
            self.plans.again_in = longer(self.plans.again_in, error);
        } else if self.plans.due_at != due_before {
            self.plans.again_in = RETRY;
        }
        planned
    }

    /// Carries on what is under way. `true` when something was written.
    async fn go_on(
        &mut self,
        snapshot: &Snapshot,
        view: &View<'_>,
        overlaid: &OverlaidOffer,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        let noted = self.note_failures(view, now).await?;
        let Some(known) = &self.catalog else { return Ok(false) };
        let node_pools = self.revisions.node_pools();
        let node_classes = self.node_classes(snapshot);
        let in_force = self.revisions.in_force.as_ref();
        let images = in_force.map(|in_force| inputs::locked_images(&in_force.definitions, &node_classes));
        let images = images.unwrap_or_default();
        let around = Surroundings {
            cluster: &self.ports.cluster,
            cloud: &self.ports.cloud,
            catalog: &known.catalog,
            node_pools: &node_pools,
            node_classes: &node_classes,
            images: &images,
            overlaid,
            launch_rules: self.launch_rules(snapshot),
            installation: &self.options.installation,
            live: &self.garbage.live,
            now,
        };
        let progress = self.claims.advance(view, &around, &mut self.journal).await?;
        let mut troubles = progress.troubles;
        let prices = NodePrices { of_catalog: &known.prices, overlaid };
        let (judged, judge_at) = self.plans.expectations.judge(view, prices, now);
        for (plan_id, fidelity) in judged {
            let noted = self.plans.records.fidelity(&self.ports.cluster, snapshot, &plan_id, fidelity.clone()).await;
            match noted {
                Err(error) if error.is_of_one_object() => troubles.push(error),
                noted => noted?,
            }
            self.journal.say(now, &Event::PlanFulfilled { plan_id, fidelity });
        }
        if progress.catalog_changed {
            self.catalog = None;
        }
        let (ports, claims) = ((&self.ports.cluster, &self.ports.cloud), &mut self.claims);
        let heard = interruptions::hear(ports, view, claims, now, &mut self.journal).await?;
        let interrupted = heard.wrote;
        let mut wrote = noted || progress.wrote || interrupted;
        troubles.extend(heard.troubles);
        let (when, aside) = ((now, &mut self.journal), &mut self.set_aside);
        wrote |= moves::go_on(&self.ports.cluster, view, when, aside, &mut troubles).await;
        let (when, aside) = ((now, &mut self.journal), &mut self.set_aside);
        wrote |= moves::abandoned::take_back(&self.ports.cluster, view, when, aside, &mut troubles).await;
        self.try_again(&troubles, now);
        wrote |= self.see_early_ends(view, now).await?;
        wrote |= self.collect_garbage(view, now).await?;
        self.wake(progress.look_again_at);
        self.wake(judge_at);
        if progress.plan_now || interrupted {
            self.plans.due_at = Some(now);
        }
        Ok(wrote)
    }

    /// What failed for one object or another is said and tried again, ever less often while it goes on failing.
    pub(in crate::controller) fn try_again(&mut self, troubles: &[PortError], now: Timestamp) {
        for error in troubles {
            self.say_trouble(chain(error), now);
        }
        if let Some(error) = troubles.first() {
            self.troubles.some_failed = true;
            let again_at = self.troubles.look_again_at(error, now);
            self.wake(again_at);
        }
    }

    /// Which new nodes are given up now. They are, whether or not that may be noted.
    async fn note_failures(&mut self, view: &View<'_>, now: Timestamp) -> Result<bool, PortError> {
        let Some(in_force) = &self.revisions.in_force else { return Ok(false) };
        // A node may have joined unseen, or as one of two.
        if !view.snapshot.doubts.kinds.is_empty() || !view.snapshot.doubts.doubled.is_empty() {
            return Ok(false);
        }
        let (cluster, journal) = (&self.ports.cluster, &mut self.journal);
        match self.failures.note(cluster, view, in_force, &mut self.set_aside, (now, journal)).await {
            Err(error) if error.is_of_one_object() => {
                self.say_trouble(chain(&error), now);
                Ok(false)
            }
            noted => noted,
        }
    }

    /// Those of the cluster. Which subnets they have the definitions may say, where nothing in the cluster does.
    fn node_classes(&self, snapshot: &Snapshot) -> Vec<EC2NodeClass> {
        let defined = self.revisions.in_force.iter().flat_map(|it| &it.definitions.node_classes);
        let defined: BTreeMap<_, _> = defined.map(|class| (&class.value.metadata.name, &class.value)).collect();
        let mut classes: Vec<EC2NodeClass> = snapshot.node_classes.iter().cloned().collect();
        for class in &mut classes {
            let of_definition = defined.get(&class.metadata.name).and_then(|defined| defined.status.as_ref());
            let status = class.status.get_or_insert_default();
            if let Some(found) = of_definition.filter(|_| status.subnets.is_empty()) {
                status.subnets.clone_from(&found.subnets);
            }
        }
        classes
    }

    fn overlaid_offer(&self, snapshot: &Snapshot, now: Timestamp) -> OverlaidOffer {
        let in_force = self.revisions.in_force.as_ref();
        let are_defined = in_force.is_some_and(|in_force| !in_force.definitions.node_overlays.is_empty());
        if !are_defined && snapshot.node_overlays.is_empty() {
            return OverlaidOffer::default();
        }
        self.with_inputs(snapshot, false, now, OverlaidOffer::new).unwrap_or_default()
    }

    /// What gates and NodeOverlays mean for launches.
    fn launch_rules(&self, snapshot: &Snapshot) -> LaunchRules {
        let definitions = self.revisions.in_force.as_ref().map(|in_force| &in_force.definitions);
        let gates = definitions.map(|definitions| definitions.settings.feature_gates.clone()).unwrap_or_default();
        let defined = definitions.into_iter().flat_map(|definitions| &definitions.node_overlays).map(|it| &it.value);
        let mut overlays = defined.chain(snapshot.node_overlays.iter());
        let prices = overlays.any(|it| it.spec.price.is_some() || it.spec.price_adjustment.is_some());
        LaunchRules { reserves_capacity: gates.reserved_capacity, keeps_order: gates.node_overlay && prices }
    }

    /// Instances that end before their nodes join.
    async fn see_early_ends(&mut self, view: &View<'_>, now: Timestamp) -> Result<bool, PortError> {
        // A node may have joined unseen.
        let Some(in_force) = self.revisions.in_force.as_ref().filter(|_| view.snapshot.doubts.leave_all_known()) else {
            return Ok(false);
        };
        let (cluster, cloud) = (&self.ports.cluster, &self.ports.cloud);
        let around = early_ends::Around { cluster, cloud, view, in_force, now };
        match self.early_ends.look(&around, &mut self.claims, &mut self.set_aside, &mut self.journal).await {
            Ok(seen) => {
                self.wake(seen.look_again_at);
                Ok(seen.wrote)
            }
            Err(error) => {
                self.say_trouble(chain(&error), now);
                self.wake(now.checked_add(RETRY).ok());
                Ok(false)
            }
        }
    }

    async fn collect_garbage(&mut self, view: &View<'_>, now: Timestamp) -> Result<bool, PortError> {
        let mut wrote = false;
        // What is not seen is no garbage.
        if !view.snapshot.doubts.leave_all_known() {
            return Ok(false);
        }
        let is_due = |before: SignedDuration| {
            let due = self.garbage.due_at.and_then(|due| due.checked_sub(before).ok());
            due.is_none_or(|due| now >= due)
        };
        let urgent = garbage::INTERVAL.saturating_sub(garbage::URGENT_APART);
        let due = is_due(SignedDuration::ZERO) || (is_due(urgent) && garbage::is_urgent(view));
        if due {
            let node_pools = self.revisions.node_pools();
            let found = GarbageContext {
                cluster: &self.ports.cluster,
                cloud: &self.ports.cloud,
                view,
                node_pools: &node_pools,
                installation: &self.options.installation,
                now,
            };
            // Where a call fails, it is not tried again at once.
            self.garbage.due_at = now.saturating_add(garbage::INTERVAL).ok();
            let known = self.garbage.live.known(now);
            let strangers = self.garbage.notes_of_strangers();
            wrote = match self.garbage.collect(&found, &mut self.set_aside, &mut self.journal).await {
                Ok(wrote) => wrote,
                // What is planned does not wait for it.
                Err(error) => {
                    self.garbage.due_at = now.saturating_add(self.next_list()).ok();
                    self.try_again(&[error], now);
                    false
                }
            };
            self.tell_of_strangers(&strangers, now);
            if self.garbage.live.known(now) != known {
                self.plans.inputs_seen = InputsSeen::default();
            }
            if self.garbage.is_news() {
                self.plans.inputs_seen = InputsSeen::default();
                self.plans.due_at = Some(now);
            }
        }
        self.wake(self.garbage.due_at);
        Ok(wrote)
    }

    async fn refresh_catalog(&mut self, snapshot: &Snapshot, now: Timestamp) -> Result<(), PortError> {
        let reserved = statuses::launched_into_reservations(snapshot);
        let is_fresh = self.catalog.as_ref().is_some_and(|known| now < known.until && known.reserved == reserved);
        if is_fresh && self.revisions.defined_classes().all(|class| self.is_described(class)) {
            return Ok(());
        }
        let catalog = self.ports.cloud.catalog().await?;
        let mut classes = BTreeMap::new();
        for class in self.revisions.node_classes(snapshot) {
            let facts = self.ports.cloud.describe(&class).await?;
            classes.insert(class.metadata.name.unwrap_or_default(), (class.spec, facts));
        }
        let turned = self.class_conditions.turned(classes.iter().map(|(name, (_, facts))| (name, facts)));
        turned.iter().for_each(|event| self.journal.say(now, event));
        let vcpu_quotas = self.ports.cloud.vcpu_quotas().await;
        let denied = self.ports.cloud.denied().await;
        let notes = self.ports.cloud.notes().await;
        let is_old = self.ports.cloud.is_asking();
        let until = now.saturating_add(if is_old { POLL } else { CATALOG_AGE }).unwrap_or(now);
        let before = self.catalog.as_mut();
        let is_same = |it: &&mut CloudAnswers| {
            Arc::ptr_eq(&it.catalog, &catalog)
                && it.classes == classes
                && it.vcpu_quotas == vcpu_quotas
                && it.denied == denied
        };
        if let Some(known) = before.filter(is_same) {
            (known.until, known.is_old) = (until, is_old);
            known.notes = notes;
            known.reserved = reserved;
            return Ok(());
        }
        let prices = Prices::new(&catalog);
        self.plans.inputs_seen = InputsSeen::default();
        let made_at = now;
        self.catalog = Some(CloudAnswers {
            catalog,
            prices,
            classes,
            vcpu_quotas,
            denied,
            notes,
            reserved,
            made_at,
            until,
            is_old,
        });
        Ok(())
    }

    /// Whether the cloud was asked about the class as it is defined now.
    fn is_described(&self, class: &EC2NodeClass) -> bool {
        let known = self.catalog.as_ref().zip(class.metadata.name.as_ref());
        known.and_then(|(known, name)| known.classes.get(name)).is_some_and(|(spec, _)| *spec == class.spec)
    }

    fn settings(&self) -> Settings {
        self.revisions.settings().cloned().unwrap_or_default()
    }

    fn wake(&mut self, moment: Option<Timestamp>) {
        self.wake_at = [self.wake_at, moment].into_iter().flatten().min();
    }
}
