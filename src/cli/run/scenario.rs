//! Plays the scenario of a folder: its definitions go into a real bare Git repository that the controller follows, and the
//! embedded cluster does what the scenario says, step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use jiff::Timestamp;

use crate::adapters::embedded::{EmbeddedClock, EmbeddedCloud, EmbeddedCluster, EmbeddedForge, EmbeddedWorld};
use crate::adapters::git::{self, Changes, FetchLimits, GitRepository, Nudge, RemoteSettings, ScriptedRepository};
use crate::api::scenario::{Commit, Scale, Scenario, ScenarioStep};
use crate::cli::arguments::DefinitionArguments;
use crate::cli::exit::Failure;
use crate::cli::inputs::{FileKind, read_file};
use crate::cli::settings;
use crate::controller::{Controller, Shutdown};
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::read::read;
use crate::ports::Clock;

use super::screen::Screen;
use super::world;

/// A step that has not settled after a day never will.
const PATIENCE: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
/// How often the controller asks the repository without being told.
const INTERVAL: Duration = Duration::from_secs(30);

type EmbeddedController = Controller<GitRepository, EmbeddedCluster, EmbeddedCloud, EmbeddedForge, EmbeddedClock>;

/// What a folder says should be played.
pub struct Script {
    folder: PathBuf,
    pub region: String,
    scenario: Scenario,
    files: BTreeMap<String, Vec<u8>>,
    objects: Snapshot,
    /// By the name of their file.
    applied_later: BTreeMap<String, Snapshot>,
}

/// Reads the folder; everything that is missing or wrong in it is said now and not in the middle of the play.
pub fn script(folder: &Path, arguments: &DefinitionArguments) -> Result<Script, Failure> {
    let files = git::read_folder(folder).map_err(Failure::of_repository)?.files;
    let definitions = settings::read_definitions(&files, arguments);
    let region = definitions.region();
    let Some(scenario) = definitions.scenario else {
        let error = anyhow!("{} has no scenario that can be read", folder.display());
        return Err(Failure::failed(error)
            .with_hint(format!("see what `cutlist lint {}` says about scenario.yaml", folder.display())));
    };
    let mut objects = Snapshot::default();
    for name in &scenario.value.objects {
        read_objects(folder, name, &mut objects)?;
    }
    let mut applied_later = BTreeMap::new();
    for name in scenario.value.steps.iter().flat_map(|step| &step.apply) {
        let mut objects = Snapshot::default();
        read_objects(folder, name, &mut objects)?;
        applied_later.insert(name.clone(), objects);
    }
    Ok(Script {
        folder: folder.to_owned(),
        region: region.name,
        scenario: scenario.value,
        // A path out of the folder can not be one of the repository that is played.
        files: files
            .into_iter()
            .filter(|file| file.has_content() && !file.path.starts_with(".."))
            .map(|file| (file.path, file.content))
            .collect(),
        objects,
        applied_later,
    })
}

fn read_objects(folder: &Path, name: &str, into: &mut Snapshot) -> Result<(), Failure> {
    let bytes = read_beside(folder, name)?;
    let outcome = read(&bytes, into).with_context(|| format!("objects of the scenario, {name}"));
    outcome.map(|_report| ()).map_err(Failure::failed)
}

fn read_beside(folder: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let path = folder.join(name);
    read_file(&path, FileKind::Snapshot)
        .with_context(|| format!("{}, which scenario.yaml names", path.display()))
        .map_err(Failure::failed)
}

/// Plays the script up to and with the step `until` (from 1), or to its end; gives the world as it is then.
pub async fn play(
    script: &Script,
    arguments: &DefinitionArguments,
    world: EmbeddedWorld,
    seed: u64,
    until: Option<usize>,
    screen: &Screen,
    shutdown: &Shutdown,
) -> Result<EmbeddedWorld, Failure> {
    let mut stage = Stage::build(script, arguments, world, seed, screen, shutdown)?;
    stage.settle().await;
    let steps = script.scenario.steps.iter().take(until.unwrap_or(usize::MAX)).enumerate();
    for (position, step) in steps {
        if shutdown.is_requested() {
            break;
        }
        stage.begin(position + 1, step, script).await?;
        stage.settle().await;
    }
    Ok(stage.world)
}

struct Stage {
    world: EmbeddedWorld,
    repository: ScriptedRepository,
    nudge: Nudge,
    controller: EmbeddedController,
    /// The commit that the controller has to see before a step is over.
    expected_commit: Option<String>,
    screen: Screen,
    shutdown: Shutdown,
}

impl Stage {
    fn build(
        script: &Script,
        arguments: &DefinitionArguments,
        world: EmbeddedWorld,
        seed: u64,
        screen: &Screen,
        shutdown: &Shutdown,
    ) -> Result<Self, Failure> {
        let clock = world.clock();
        let name = script.folder.canonicalize().ok();
        let name = name.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let repository = ScriptedRepository::create(&script.files, &format!("Begin with {name}"), clock.now())
            .map_err(Failure::failed)?;
        let remote = GitRepository::open(&RemoteSettings {
            url: repository.path().display().to_string(),
            reference: None,
            sub_path: String::new(),
            interval: INTERVAL,
            credentials_file: None,
            clone_folder: None,
            program: std::env::current_exe().map_err(Failure::failed)?,
            limits: FetchLimits::default(),
            earlier: None,
            with_history: false,
        })
        .map_err(Failure::failed)?;
        world.with(|world| world.load(script.objects.clone()));
        let nudge = remote.nudge();
        let ports = world::ports(remote, &world, EmbeddedForge::default());
        let arguments = arguments.clone();
        let options = world::options(seed, move |files| settings::read_definitions(files, &arguments));
        let controller = Controller::new(ports, options, world::journal(screen), shutdown.clone());
        let (screen, shutdown) = (screen.clone(), shutdown.clone());
        Ok(Self { world, repository, nudge, controller, expected_commit: None, screen, shutdown })
    }

    /// Runs until nothing more happens by itself.
    async fn settle(&mut self) {
        let clock = self.world.clock();
        let give_up_at = clock.now().saturating_add(PATIENCE).unwrap_or(Timestamp::MAX);
        loop {
            self.controller.pass().await;
            if self.shutdown.is_requested() {
                return;
            }
            let has_seen = match (&self.expected_commit, self.controller.last_revision()) {
                (None, seen) => seen.is_some(),
                (Some(expected), seen) => seen.is_some_and(|revision| revision.id == *expected),
            };
            if has_seen && self.controller.is_settled() && self.world.with(|world| world.is_still()) {
                return;
            }
            if clock.now() >= give_up_at {
                self.screen.note(clock.now(), "nothing settled within a day: going on with the next step");
                return;
            }
            self.controller.wait().await;
        }
    }

    async fn begin(&mut self, position: usize, step: &ScenarioStep, script: &Script) -> Result<(), Failure> {
        if let Some(seconds) = step.wait.as_ref().and_then(crate::api::duration::NillableDuration::seconds) {
            self.let_pass(seconds).await;
        }
        let title = step.title.clone().unwrap_or_else(|| default_title(step));
        self.screen.title(position, script.scenario.steps.len(), &title);
        if let Some(scale) = &step.scale {
            self.scale(scale)?;
        }
        for name in &step.apply {
            let objects = script.applied_later.get(name).cloned().unwrap_or_default();
            self.world.with(|world| world.load(objects));
            self.screen.note(self.world.clock().now(), &format!("kubectl apply -f {name}"));
        }
        if let Some(count) = step.interrupt {
            self.interrupt(count)?;
        }
        if let Some(commit) = &step.commit {
            self.commit(commit, script)?;
        }
        Ok(())
    }

    /// Lets time pass while the controller goes on.
    async fn let_pass(&mut self, seconds: u64) {
        let pause = tokio::time::sleep(Duration::from_secs(seconds));
        tokio::pin!(pause);
        loop {
            self.controller.pass().await;
            tokio::select! {
                () = &mut pause => return,
                () = self.controller.wait() => {}
            }
            if self.shutdown.is_requested() {
                return;
            }
        }
    }

    fn scale(&self, scale: &Scale) -> Result<(), Failure> {
        if !self.world.with(|world| world.scale(&scale.deployment, scale.replicas)) {
            let error = anyhow!("the scenario scales {}, and there is no such Deployment", scale.deployment);
            return Err(Failure::failed(error).with_hint("name one of the scenario's objects as namespace/name"));
        }
        let text = format!("kubectl scale deployment {} --replicas {}", scale.deployment, scale.replicas);
        self.screen.note(self.world.clock().now(), &text);
        Ok(())
    }

    fn interrupt(&self, count: u32) -> Result<(), Failure> {
        let taken = self.world.with(|world| world.interrupt_some(usize::try_from(count).unwrap_or(usize::MAX)));
        if taken.is_empty() {
            let error = anyhow!("the scenario interrupts {count} spot instances, and there is none");
            return Err(Failure::failed(error).with_hint("let a pool with capacity type spot launch some first"));
        }
        for instance in taken {
            self.screen.note(self.world.clock().now(), &format!("EC2 will take {instance} back in two minutes"));
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit, script: &Script) -> Result<(), Failure> {
        let mut changes = Changes::new();
        for (path, source) in &commit.files {
            changes.insert(path.clone(), Some(read_beside(&script.folder, source)?));
        }
        changes.extend(commit.delete.iter().map(|path| (path.clone(), None)));
        let id = self.repository.commit(&changes, &commit.message, self.world.clock().now());
        self.expected_commit = Some(id.map_err(Failure::failed)?);
        self.nudge.nudge();
        Ok(())
    }
}

fn default_title(step: &ScenarioStep) -> String {
    match (&step.scale, &step.commit) {
        (Some(scale), _) => format!("{} pods of {}", scale.replicas, scale.deployment),
        (None, Some(commit)) => commit.message.lines().next().unwrap_or_default().to_owned(),
        (None, None) if step.interrupt.is_some() => "EC2 takes spot instances back".to_owned(),
        (None, None) if step.apply.is_empty() => "time passes".to_owned(),
        (None, None) => step.apply.join(", "),
    }
}
