//! The controller at work on a real cluster, until it is stopped or somebody else acts.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::anyhow;
use jiff::Timestamp;

use crate::adapters::aws::api::Tally;
use crate::adapters::aws::api::tally::CallOutcome;
use crate::adapters::kubernetes::{
    Calls, Connection, EventRecorder, KubernetesCluster, Leadership, NotedInCluster, OtherEnforcer, Own, Renewals,
    other_leader,
};
use crate::adapters::operations::{Heartbeat, Metrics, Readiness};
use crate::api::approval_rules::ApprovalRules;
use crate::cli::arguments::{ControllerArguments, ModeArgument, RunArguments, SourceArgument};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::process::standard_output;
use crate::cli::{output, settings};
use crate::controller::events::{self, kubernetes_events};
use crate::controller::notifications::Teller;
use crate::controller::{Controller, Journal, Mode, Options, Planner, Ports, Shutdown};
use crate::core::planner::decide;
use crate::definitions::Definitions;
use crate::ports::{Clock, Cloud, Forge, Notice, Repository};
use crate::render::terminal::clean_lines;

use super::notifications::Around;
use super::screen::{Screen, Times};
use super::{log, notifications, now, outcome, reviews};

/// How often it is looked for others that act.
const OTHERS_LOOK: Duration = Duration::from_secs(20);

/// What is told to those who watch this process.
#[derive(Clone, Default)]
pub struct Watched {
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub heartbeat: Heartbeat,
    /// Calls to AWS.
    pub tally: Tally,
}

/// What is driven, wherever definitions and nodes come from, and whoever is told of it.
pub struct Drive<'d> {
    pub arguments: &'d RunArguments,
    pub connection: &'d Connection,
    pub leadership: Leadership,
    pub identity: &'d str,
    pub watched: &'d Watched,
    pub shutdown: &'d Shutdown,
    pub installation: String,
    pub cluster_name: Option<String>,
    /// Where nodes are launched.
    pub region: String,
}

impl Drive<'_> {
    /// `machines` is what else goes on, for as long as the controller runs.
    pub async fn until_the_end<R: Repository, E: Cloud, F: Forge>(
        self,
        repository: R,
        cloud: E,
        forge: F,
        machines: impl Future<Output = ()>,
    ) -> Result<Outcome, Failure> {
        let Self { arguments, connection, leadership, identity, watched, shutdown, installation, .. } = self;
        let Watched { metrics, readiness, heartbeat, tally } = watched;
        let controller = &arguments.controller;
        let screen = Screen::new(standard_output(), Times::Clock, now(), shutdown.clone());
        anstream::eprintln!("installation {installation}");
        let recorder = EventRecorder::start(connection, identity);
        let around = Around {
            ledger: NotedInCluster(connection.client.clone()),
            leadership: leadership.clone(),
            metrics: metrics.clone(),
        };
        let notifications = notifications::start(&arguments.notifications, around, &installation)?;
        let teller = &notifications.teller();
        let ports = Ports {
            repository,
            cluster: KubernetesCluster::watch(connection, leadership.clone()),
            cloud,
            forge,
            clock: connection.time.clone(),
        };
        let definitions = arguments.definitions.clone();
        let options = Options {
            mode: match controller.mode {
                ModeArgument::Observe => Mode::Observe,
                ModeArgument::Enforce => Mode::Enforce,
            },
            applies_definitions: controller.source != SourceArgument::Cluster,
            lease_transitions: controller.elects().then(|| leadership.transitions()),
            installation: installation.clone(),
            cluster_name: self.cluster_name,
            region: Some(self.region),
            approval_floor: controller.approval.iter().fold(ApprovalRules::default(), |rules, rule| rules.and(&rule.0)),
            allows_older_revisions: controller.allow_older_revision,
            read: Box::new(move |files| Definitions {
                masks: output::hidden(),
                ..settings::read_definitions(files, &definitions)
            }),
            seed: arguments.seed,
            planner: measured(metrics, teller),
        };
        let journal = journal(&screen, recorder, watched, teller);
        let mut lost = leadership.clone();
        let mut running = Controller::new(ports, options, journal, shutdown.clone());
        let looks = async {
            while !shutdown.is_requested() {
                heartbeat.begins();
                running.pass().await;
                heartbeat.ends();
                if let Some(because) = running.must_begin_anew() {
                    return Err(of_another_region(because));
                }
                running.wait().await;
            }
            Ok(outcome(shutdown))
        };
        let own = own(controller, connection, Some(connection.time.now()));
        let acts = controller.mode == ModeArgument::Enforce;
        let ended = tokio::select! {
            other = others_begin(connection, &own), if acts => Err(other),
            ended = looks => ended,
            () = machines => Ok(outcome(shutdown)),
            failed = Box::pin(reviews::beside(arguments)) => failed.map(|never| match never {}),
            // Who is stopped gives the lease back.
            () = lost.becomes(false) => if shutdown.is_requested() { Ok(outcome(shutdown)) } else { Err(leads_no_longer()) },
        };
        metrics.leads(false);
        readiness.set(false);
        notifications.finish().await;
        screen.summary(now());
        tell_calls(&connection.calls);
        tell_cloud_calls(tally);
        screen.written(ended?)
    }
}

fn of_another_region(because: &str) -> Failure {
    Failure::failed(anyhow!("{}", output::shown(because)))
        .with_hint("start it again: it takes the region of that revision")
}

/// Which of the two it was, the log says before.
pub fn leads_no_longer() -> Failure {
    let why = "this process leads no longer: another one holds the lease, or it could not be renewed in time";
    Failure::failed(anyhow!(why)).with_hint("start it again: it will stand for election")
}

pub fn lease_namespace(controller: &ControllerArguments, connection: &Connection) -> String {
    controller.lease_namespace.clone().unwrap_or_else(|| connection.namespace.clone())
}

/// The lease that this process stands for.
pub fn own(controller: &ControllerArguments, connection: &Connection, since: Option<Timestamp>) -> Own {
    let namespace = controller.holds_lease().then(|| lease_namespace(controller, connection));
    Own { since: since.filter(|_| namespace.is_some()), namespace }
}

/// Comes to an end when somebody else acts who was there before, or who does not give way.
async fn others_begin(connection: &Connection, own: &Own) -> Failure {
    let mut renewals = Renewals::default();
    loop {
        tokio::time::sleep(OTHERS_LOOK).await;
        // While it can not be asked, the lease of this process runs out, too.
        if let Ok(Some(other)) = other_leader(&connection.client, own, &connection.time, &mut renewals).await {
            return beside(&other);
        }
    }
}

pub fn beside(other: &OtherEnforcer) -> Failure {
    let hint = match other {
        OtherEnforcer::Karpenter(_) => "use --mode observe beside Karpenter, or scale Karpenter to 0 first",
        OtherEnforcer::Cutlist(_) => "use --mode observe beside it, or stop it first",
    };
    Failure::failed(anyhow!("{other}")).with_hint(hint)
}

/// Shows events, logs them, publishes them on the objects concerned, and counts them.
fn journal(screen: &Screen, recorder: EventRecorder, watched: &Watched, teller: &Teller) -> Journal {
    let (screen, teller, Watched { metrics, readiness, .. }) = (screen.clone(), teller.clone(), watched.clone());
    Journal::new(move |now, event| {
        log::record(now, event);
        screen.show(now, event);
        events::metrics::count(&metrics, &readiness, event);
        teller.heard(event, now);
        for notice in kubernetes_events::of(event) {
            recorder.publish(Notice { note: clean_lines(&output::shown(&notice.note)), ..notice });
        }
    })
}

/// What this run asked of the API server.
fn tell_calls(calls: &Calls) {
    let all = calls.all();
    let count = |verbs: &[&str]| -> u64 {
        all.iter().filter(|(verb, ..)| verbs.contains(verb)).map(|(_, _, count)| count).sum()
    };
    let writes = ["create", "update", "patch", "delete"];
    let by_resource: Vec<String> = all
        .iter()
        .filter(|(verb, ..)| writes.contains(verb))
        .map(|(verb, resource, count)| format!("{verb} {resource} {count}"))
        .collect();
    output::say(&format!(
        "API server: {} reads and watches, {} writes ({})",
        count(&["read", "watch"]),
        count(&writes),
        by_resource.join(", ")
    ));
}

/// What this run asked of AWS; nothing where it is not the cloud.
fn tell_cloud_calls(tally: &Tally) {
    let counts = tally.counts();
    if counts.is_empty() {
        return;
    }
    let mut by_outcome: BTreeMap<CallOutcome, u64> = BTreeMap::new();
    counts.iter().for_each(|(_, outcome, count)| *by_outcome.entry(*outcome).or_default() += count);
    let outcomes: Vec<String> =
        by_outcome.iter().map(|(outcome, count)| format!("{count} {}", outcome.name())).collect();
    let mut by_action: BTreeMap<&str, u64> = BTreeMap::new();
    counts.iter().for_each(|(action, _, count)| *by_action.entry(action.name()).or_default() += count);
    let actions: Vec<String> = by_action.iter().map(|(action, count)| format!("{action} {count}")).collect();
    output::say(&format!("AWS: {} ({})", outcomes.join(", "), actions.join(", ")));
}

/// The planner, with a watch in hand, and with a word about what it found.
fn measured(metrics: &Metrics, teller: &Teller) -> Box<Planner> {
    let (metrics, teller) = (metrics.clone(), teller.clone());
    Box::new(move |inputs| {
        let began = std::time::Instant::now();
        let plan = decide(inputs);
        metrics.planned(began.elapsed().as_secs_f64(), plan.summary.pods_pending);
        teller.planned(&plan, now());
        plan
    })
}
