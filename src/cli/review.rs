//! `cutlist review`: looks at open pull requests, from where only connections to the outside are allowed. What is done with them stands
//! in `controller/reviews`.

mod previews;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;

use super::arguments::{PlanningArguments, PreviewArguments, ReviewArguments, ReviewManner};
use super::exit::{Failure, Outcome};
use super::output;
use super::post::{Resolved, resolve};
use super::process::told_to_stop;
use super::signing::Signing;
use crate::adapters::forge::{HookReceiver, HookSettings, HostedRepository, SecretSource};
use crate::adapters::git::{FetchLimits, Histories, RemoteSettings};
use crate::adapters::system_clock::SystemClock;
use crate::controller::reviews::{ReviewPorts, Rounds, Shown};

use previews::ClusterPreviews;

pub fn run(arguments: &ReviewArguments) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let planning = PlanningArguments {
        catalog: arguments.catalog.clone(),
        facts: None,
        packing: arguments.packing,
        now: None,
        seed: arguments.seed,
        definitions: arguments.definitions.clone(),
    };
    let preview = PreviewArguments {
        environment: arguments.environment.clone(),
        clusters: arguments.clusters.clone(),
        cluster_variables: arguments.cluster_variables.clone(),
        is_live: arguments.clusters.is_empty(),
        ..PreviewArguments::of_pull_requests(arguments.live.clone(), planning, &arguments.manner, &arguments.signing)
    };
    let remote = Remote {
        url: arguments.remote.clone(),
        sub_path: arguments.sub_path.clone().unwrap_or_default(),
        credentials_file: arguments.credentials_file.clone(),
    };
    let Some(seconds) = arguments.interval.seconds() else {
        return Err(Failure::usage(anyhow!("--interval must be a duration, not Never")));
    };
    if arguments.manner.approve_merged && !arguments.clusters.is_empty() {
        return Err(Failure::usage(anyhow!(
            "--approve-merged approves in a living cluster, and --cluster names a snapshot"
        ))
        .with_hint("leave out --cluster, and name the cluster with --kubeconfig"));
    }
    let interval = Duration::from_secs(seconds);
    Signing::of(&arguments.signing, &arguments.definitions)?;
    let resolved = resolve(&arguments.forge, None)?;
    let ended = runtime.block_on(async {
        let mut rounds = rounds(remote, preview, &resolved, &arguments.forge.forge_name, &arguments.manner)?;
        if arguments.once {
            let is_complete = rounds.look().await;
            return Ok(if is_complete { Outcome::Clean } else { Outcome::Findings });
        }
        let hooks = receiver(&resolved, &arguments.manner).await?;
        tokio::select! {
            () = look_on(&mut rounds, interval, hooks) => Ok(Outcome::Clean),
            // Ended by a signal it would leave its clone behind.
            _ = told_to_stop() => Ok(Outcome::Interrupted),
        }
    });
    runtime.shutdown_background();
    ended
}

/// Asking more often is a burden for the forge.
const INTERVAL_MIN: Duration = Duration::from_secs(5);

/// Where pull requests are fetched from.
pub(super) struct Remote {
    pub url: String,
    pub sub_path: String,
    pub credentials_file: Option<PathBuf>,
}

/// The forge, the clone, and the clusters that pull requests are planned for.
pub(super) struct Adapters {
    forge: HostedRepository,
    history: Histories,
    previews: ClusterPreviews,
}

impl ReviewPorts for Adapters {
    type Forge = HostedRepository;
    type History = Histories;
    type Previews = ClusterPreviews;
    type Clock = SystemClock;

    fn forge(&self) -> &HostedRepository {
        &self.forge
    }

    fn history(&self) -> &Histories {
        &self.history
    }

    fn previews(&self) -> &ClusterPreviews {
        &self.previews
    }

    fn clock(&self) -> &SystemClock {
        &SystemClock
    }

    fn say(&self, text: &str) {
        output::say(text);
    }
}

/// Asks nothing yet.
pub(super) fn rounds(
    remote: Remote,
    preview: PreviewArguments,
    resolved: &Resolved,
    name: &str,
    manner: &ReviewManner,
) -> Result<Rounds<Adapters>, Failure> {
    let settings = RemoteSettings {
        url: remote.url,
        reference: None,
        sub_path: String::new(),
        interval: INTERVAL_MIN,
        credentials_file: remote.credentials_file,
        clone_folder: None,
        program: std::env::current_exe().map_err(Failure::failed)?,
        limits: FetchLimits::default(),
        earlier: None,
        with_history: true,
    };
    let history = Histories::open(&settings).map_err(Failure::failed)?;
    let path = history.folder().join(remote.sub_path);
    let shown = Shown {
        name: name.to_owned(),
        is_untrusted: false,
        link: None,
        comment: manner.comment.manner(),
        checks: !manner.no_checks,
    };
    let forge = resolved.connect()?;
    for team in &manner.approvers {
        forge.check_team(team).map_err(Failure::usage)?;
    }
    let previews = ClusterPreviews::new(PreviewArguments { path, ..preview }, history.folder());
    Ok(Rounds::new(Adapters { forge, history, previews }, manner.rules(), shown))
}

/// Listens for webhooks, where that was asked for.
pub(super) async fn receiver(resolved: &Resolved, manner: &ReviewManner) -> Result<Option<HookReceiver>, Failure> {
    let (Some(address), Some(file)) = (manner.listen_hooks, manner.hook_secret_file.clone()) else { return Ok(None) };
    let settings = HookSettings { address, secret: SecretSource::File(file) };
    let Resolved { kind, address, repository, .. } = resolved;
    let receiver = HookReceiver::start(&settings, *kind, repository, address, Resolved::clock()).await;
    let receiver = receiver.map_err(Failure::failed)?;
    output::say(&format!("webhooks at http://{}/hooks", receiver.address));
    Ok(Some(receiver))
}

/// Looks again and again, and sooner when a webhook says so.
pub(super) async fn look_on(rounds: &mut Rounds<Adapters>, interval: Duration, hooks: Option<HookReceiver>) {
    let interval = interval.max(INTERVAL_MIN);
    loop {
        rounds.look().await;
        let news = async {
            match &hooks {
                Some(hooks) => hooks.news().await,
                None => std::future::pending().await,
            }
        };
        let pause = rounds.again_after().map_or(interval, |soon| soon.min(interval));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = news => {}
        }
    }
}
