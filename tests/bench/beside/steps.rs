//! One control plane from its start to its last step.

use std::path::Path;
use std::time::Duration;

use crate::control_plane::ControlPlane;
use crate::deeds::Deeds;
use crate::foreseen::{Foreseen, Planner};
use crate::karpenter::{self, Karpenter};
use crate::sold::Sold;
use crate::world::{BRIEF, World};

/// Kinds of steps that are no change by chance.
pub const FURTHER: [&str; 3] = ["begin", "pool made", "expiry"];
/// Every so many steps a pool is made whose nodes expire.
const EXPIRY_EVERY: usize = 12;

/// What may follow from one change, until it is cut off.
const MOST_LOOKS: usize = 12;

pub struct Step {
    pub seed: u64,
    pub number: usize,
    pub kind: &'static str,
    pub looks: Vec<Look>,
}

/// One plan, and what Karpenter did then.
pub struct Look {
    pub number: usize,
    /// What was missed, in words; `None` where it was foreseen.
    pub missed: Option<&'static str>,
    /// Nothing was foreseen, and nothing was done.
    pub is_idle: bool,
    /// How many nodes Karpenter made and removed, as far as they were compared.
    pub made: usize,
    pub gone: usize,
}

impl Step {
    pub fn is_foreseen(&self) -> bool {
        self.looks.iter().all(|look| look.missed.is_none())
    }
}

struct Stage<'a> {
    plane: &'a ControlPlane,
    planner: Planner,
    karpenter: Karpenter,
    world: World,
    folder: &'a Path,
    seed: u64,
    number: usize,
}

/// Plays the steps of one seed, and tells each as soon as it is over.
pub fn play(cutlist: &Path, programs: &Path, folder: &Path, seed: u64, count: usize, tell: &dyn Fn(Step)) {
    let plane = ControlPlane::start(programs);
    let cluster = plane.cluster();
    let folder = folder.join(format!("seed-{seed}"));
    let _ = std::fs::remove_dir_all(&folder);
    let sold = Sold::write(&programs.join("karpenter-kwok-types.json"), &folder);
    let karpenter = Karpenter::start(&plane, &cluster, programs, &sold.types);
    std::thread::sleep(Duration::from_secs(8));
    karpenter.pause();
    let definitions = folder.join("definitions");
    let world = World::begin(&cluster, &karpenter, &definitions, seed);
    let planner = Planner {
        cutlist: cutlist.to_owned(),
        kubeconfig: plane.kubeconfig_of_admin(),
        catalog: sold.catalog,
        definitions,
    };
    let mut stage = Stage { plane: &plane, planner, karpenter, world, folder: &folder, seed, number: 0 };
    tell(stage.step("begin", "three pools and three workloads", MOST_LOOKS));
    while stage.number < count {
        if stage.number % EXPIRY_EVERY == EXPIRY_EVERY - 2 {
            let what = stage.world.make_brief(&cluster, &stage.karpenter);
            tell(stage.step("pool made", &what, MOST_LOOKS));
            karpenter::wait_for_age(&cluster, "brief", BRIEF);
            tell(stage.step("expiry", "nodes of pool brief have expired", 1));
            stage.world.remove_brief(&cluster);
            stage.world.settle(&cluster);
            let mark = stage.karpenter.mark();
            stage.karpenter.go_on();
            stage.karpenter.wait(&cluster, mark, &Deeds::default());
        } else {
            let (kind, what) = stage.world.change(&cluster, &stage.karpenter);
            tell(stage.step(kind, &what, MOST_LOOKS));
        }
    }
    plane.keep_logs(&folder.join("logs"));
}

impl Stage<'_> {
    /// Foresees, lets Karpenter go on until it did as much, and compares, again and again until nothing comes of it any more. Karpenter is
    /// paused before and after.
    fn step(&mut self, kind: &'static str, what: &str, most_looks: usize) -> Step {
        self.number += 1;
        println!("seed {}, step {}, {kind}: {what}", self.seed, self.number);
        let mut looks: Vec<Look> = Vec::new();
        while looks.len() < most_looks && looks.last().is_none_or(|look| !look.is_idle) {
            looks.push(self.look(looks.len() + 1));
            if looks.last().is_some_and(|look| look.made + look.gone == 0) {
                break;
            }
        }
        Step { seed: self.seed, number: self.number, kind, looks }
    }

    fn look(&mut self, number: usize) -> Look {
        let cluster = self.plane.cluster();
        self.world.settle(&cluster);
        let foreseen = self.planner.look(self.folder);
        let mark = self.karpenter.mark();
        self.karpenter.go_on();
        self.world.catch_up(&cluster);
        self.karpenter.wait(&cluster, mark, &foreseen.deeds);
        let did = self.karpenter.did(mark, Some(&foreseen.deeds)).described(&foreseen.alike);
        let missed = foreseen.deeds.difference(&did);
        println!("  {}, {}.{number} {}: {did}", self.seed, self.number, missed.unwrap_or("foreseen"));
        if missed.is_some() {
            println!("    foreseen was: {}", foreseen.deeds);
            self.keep(number, &foreseen, &did, mark);
        }
        let is_idle = foreseen.deeds.is_empty() && did.is_empty();
        Look { number, missed, is_idle, made: did.made.len(), gone: did.gone.len() }
    }

    /// All that it takes to look at it again.
    fn keep(&self, look: usize, foreseen: &Foreseen, did: &Deeds, mark: usize) {
        let folder = self.folder.join(format!("missed-{}.{look}", self.number));
        let definitions = folder.join("definitions");
        std::fs::create_dir_all(&definitions).unwrap();
        for file in ["pools.yaml", "cutlist.yaml"] {
            std::fs::copy(self.planner.definitions.join(file), definitions.join(file)).unwrap();
        }
        std::fs::write(folder.join("snapshot.json"), &foreseen.snapshot).unwrap();
        std::fs::write(folder.join("plan.json"), serde_json::to_string_pretty(&foreseen.plan).unwrap()).unwrap();
        std::fs::write(folder.join("karpenter.log"), self.karpenter.log().split_at(mark).1).unwrap();
        let now = foreseen.plan["generatedFor"].as_str().unwrap_or_default();
        let again = format!(
            "foreseen: {}\nKarpenter: {did}\n\ncutlist plan {} --snapshot {} --catalog {} --packing karpenter --now {now}\n",
            foreseen.deeds,
            definitions.display(),
            folder.join("snapshot.json").display(),
            self.planner.catalog.display(),
        );
        std::fs::write(folder.join("again.txt"), again).unwrap();
        println!("    kept in {}", folder.display());
    }
}
