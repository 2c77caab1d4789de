//! The scenarios of `tests/scenarios` on the control plane: after each step the cluster must look as it does in the embedded
//! world.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::{Changes, ScriptedRepository};
use cutlist::api::scenario::{Scenario, ScenarioDocument, ScenarioStep};
use jiff::Timestamp;

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::program::{self, Calls, Program};
use crate::state::describe;
use crate::table::SCENARIOS;

/// Within this a step must look as expected. The longest wait is for what only Kubernetes decides, such as garbage collection.
const PATIENCE: Duration = Duration::from_secs(120);
/// And it must stay so.
const STILL: Duration = Duration::from_secs(3);

pub fn play(plane: &mut ControlPlane, name: &str) {
    let scenario = SCENARIOS.iter().find(|one| one.expected.ends_with(name)).unwrap();
    let folder = scenario.folder();
    let script = script(&folder);
    let expected = sections(&std::fs::read_to_string(scenario.expected()).unwrap());
    assert_eq!(expected.len(), script.steps.len());
    let cluster = plane.cluster();
    let repository = ScriptedRepository::create(&files(&folder), "Begin", Timestamp::now()).unwrap();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    for name in &script.objects {
        cluster.apply_all(&read(&folder, name));
    }
    let mut cutlist = program.start(plane);
    for (step, expected) in script.steps.iter().zip(&expected) {
        let begin = Instant::now();
        act(step, &folder, &cluster, &repository);
        settle(&cluster, step.title.as_ref().unwrap(), expected);
        cutlist.must_run();
        plane.say(format!("{:5.1} s  {}", begin.elapsed().as_secs_f64(), step.title.as_ref().unwrap()));
    }
    let (as_planned, planned) = program::fidelity(&cluster);
    plane.say(format!(
        "{as_planned} of {planned} pods on the node that was planned; {}",
        Calls::so_far(plane).summary()
    ));
    plane.must_run();
}

pub fn script(folder: &Path) -> Scenario {
    let document: ScenarioDocument = serde_yaml::from_str(&read(folder, "scenario.yaml")).unwrap();
    document.spec
}

/// The files at the root of the folder, as the repository has them at first.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())).collect()
}

fn act(step: &ScenarioStep, folder: &Path, cluster: &Cluster, repository: &ScriptedRepository) {
    if let Some(seconds) = step.wait.as_ref().and_then(cutlist::api::duration::NillableDuration::seconds) {
        std::thread::sleep(Duration::from_secs(seconds));
    }
    for name in &step.apply {
        cluster.apply_all(&read(folder, name));
    }
    if let Some(scale) = &step.scale {
        program::scale(cluster, &scale.deployment, scale.replicas);
    }
    if let Some(commit) = &step.commit {
        let mut changes = Changes::new();
        for (path, source) in &commit.files {
            changes.insert(path.clone(), Some(read(folder, source).into_bytes()));
        }
        changes.extend(commit.delete.iter().map(|path| (path.clone(), None)));
        repository.commit(&changes, &commit.message, Timestamp::now()).unwrap();
    }
}

/// Waits until the cluster looks as expected, and goes on doing so.
fn settle(cluster: &Cluster, title: &str, expected: &str) {
    let mut since: Option<Instant> = None;
    cluster.wait(&format!("{title}\n{expected}"), PATIENCE, |cluster| {
        let found = describe(&program::objects(cluster));
        if found != expected {
            since = None;
            return Err(format!("\n{found}"));
        }
        if since.get_or_insert_with(Instant::now).elapsed() < STILL { Err("not for long".to_owned()) } else { Ok(()) }
    });
}

/// What `expected.txt` says of each step.
fn sections(text: &str) -> Vec<String> {
    let mut sections: Vec<String> = Vec::new();
    for line in text.lines() {
        match sections.last_mut() {
            Some(section) if line.starts_with(' ') => section.push_str(&format!("{line}\n")),
            _ => sections.push(String::new()),
        }
    }
    sections
}

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
