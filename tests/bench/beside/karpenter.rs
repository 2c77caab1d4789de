//! Karpenter itself, with its kwok provider: how it is started, and what it did by its log and its claims.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::{ControlPlane, Process, free_ports};
use crate::deeds::{Deeds, Gone, Made, Why};

const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const NODES: &str = "/api/v1/nodes";
/// It looks for nodes to disrupt every 10 s, looks again 15 s later before it does it, and may wait for `consolidateAfter` before.
const QUIET: Duration = Duration::from_secs(40);
/// Where it found nothing to save it looks again only when something has changed that it counts, or after five minutes, though a node may have
/// become free to go in between.
const SURELY_QUIET: Duration = Duration::from_secs(330);
/// Nothing more belongs to what it did.
const SETTLED: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_secs(900);
const PAUSE: Duration = Duration::from_millis(400);
/// Lines of its log that say that something is going on.
const BUSY: [&str; 8] = [
    "created nodeclaim",
    "launched nodeclaim",
    "registered nodeclaim",
    "initialized nodeclaim",
    "disrupting node(s)",
    "tainted node",
    "deleted node",
    "deleted nodeclaim",
];

pub struct Karpenter {
    process: Process,
    /// By name, every claim as it was seen last.
    claims: BTreeMap<String, Value>,
    /// How much of the log was read.
    read: usize,
}

/// What it did in one go, such as the nodes of one batch of pods, or one command with all that is made for it.
struct Deed {
    at: Timestamp,
    by: By,
    made: Vec<String>,
    gone: Vec<Gone>,
    /// Nodes of the command that are still to be made.
    owed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Provisioner,
    Disruption,
    Expiration,
}

/// Nodes that are made, or that expire, within it are of one go.
const ONE_GO: SignedDuration = SignedDuration::from_secs(2);

impl Karpenter {
    /// Applies its definitions and a class, and starts it; gives it when it has begun to work.
    pub fn start(plane: &ControlPlane, cluster: &Cluster, programs: &Path, types: &Path) -> Self {
        for entry in std::fs::read_dir(programs.join("karpenter-kwok-definitions")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for object in documents(&text) {
                cluster.apply(&object, Apply::ForReal).unwrap();
            }
        }
        cluster.wait("its definitions are served", PATIENCE, |cluster| {
            cluster.get("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses").map_err(|error| error.to_string())
        });
        cluster.apply_all(
            "{ apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: { name: default }, spec: {} }",
        );
        let [metrics, health] = free_ports();
        let mut command = Command::new(programs.join("karpenter-kwok"));
        command
            .args(["--disable-leader-election", "--log-level", "debug"])
            .args(["--metrics-port", &metrics.to_string(), "--health-probe-port", &health.to_string()])
            .arg("--instance-types-file-path")
            .arg(types)
            .env("KUBECONFIG", plane.kubeconfig_of_admin())
            .env("SYSTEM_NAMESPACE", "kube-system");
        let process = plane.run("karpenter", command);
        Self { process, claims: BTreeMap::new(), read: 0 }
    }

    pub fn pause(&self) {
        self.process.suspend();
    }

    pub fn go_on(&self) {
        self.process.resume();
    }

    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Where its log ends now.
    pub fn mark(&mut self) -> usize {
        self.read = self.process.log().len();
        self.read
    }

    /// Waits until it did as much as was foreseen, or is quiet, and pauses it. What it does beyond stays for the next look.
    pub fn wait(&mut self, cluster: &Cluster, mark: usize, foreseen: &Deeds) {
        let (begin, mut last) = (Instant::now(), Instant::now());
        while begin.elapsed() < PATIENCE {
            self.process.must_run();
            std::thread::sleep(PAUSE);
            let on_the_way = self.note_claims(cluster);
            let is_busy = self.has_said_more();
            if is_busy || on_the_way {
                last = Instant::now();
                continue;
            }
            let is_done = !foreseen.is_empty() && is_enough(foreseen, &self.did(mark, Some(foreseen)));
            // A little longer than its batch of pods, so that all of it is seen.
            let quiet = match is_done {
                true => SETTLED,
                false if foreseen.is_empty() => QUIET,
                false => SURELY_QUIET,
            };
            if last.elapsed() > quiet {
                self.pause();
                // It may have begun with something in between.
                if !self.has_said_more() && !self.note_claims(cluster) {
                    return;
                }
                self.go_on();
                last = Instant::now();
            }
        }
        self.pause();
    }

    /// Whether its log has grown by a line that says that something is going on.
    fn has_said_more(&mut self) -> bool {
        let log = self.process.log();
        let is_busy = BUSY.iter().any(|word| log.split_at(self.read).1.contains(word));
        self.read = log.len();
        is_busy
    }

    /// Notes claims as they are; whether one of them is on its way in or out.
    fn note_claims(&mut self, cluster: &Cluster) -> bool {
        let mut on_the_way = false;
        let claims = cluster.list(CLAIMS);
        let nodes = cluster.list(NODES);
        for claim in claims {
            let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_there = conditions.iter().any(|it| it["type"] == "Initialized" && it["status"] == "True");
            on_the_way |= !is_there || !claim["metadata"]["deletionTimestamp"].is_null();
            self.claims.insert(claim["metadata"]["name"].as_str().unwrap().to_owned(), claim);
        }
        on_the_way || nodes.iter().any(|node| !node["metadata"]["deletionTimestamp"].is_null())
    }

    /// What it did since the mark: all of it, or the least beginning that is as much as was foreseen.
    pub fn did(&self, mark: usize, foreseen: Option<&Deeds>) -> Deeds {
        let mut deeds = Deeds::default();
        for deed in self.in_order(mark) {
            if foreseen.is_some_and(|foreseen| !foreseen.is_empty() && is_enough(foreseen, &deeds)) {
                break;
            }
            deeds.made.extend(deed.made.iter().filter_map(|name| self.claims.get(name)).map(made));
            deeds.gone.extend(deed.gone);
        }
        deeds.sorted()
    }

    fn in_order(&self, mark: usize) -> Vec<Deed> {
        let log = self.process.log();
        let mut deeds: Vec<Deed> = Vec::new();
        for said in log.split_at(mark).1.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some(at) = said["time"].as_str().and_then(|time| time.parse::<Timestamp>().ok()) else { continue };
            match said["message"].as_str() {
                Some("created nodeclaim") => {
                    let name = said["NodeClaim"]["name"].as_str().unwrap_or_default().to_owned();
                    note_made(&mut deeds, at, name, said["controller"] == "provisioner");
                }
                Some("disrupting node(s)") => {
                    let word = said["reason"].as_str().or_else(|| said["command"].as_str()).unwrap_or_default();
                    let why = Why::of(word);
                    let gone = disrupted(&said).map(|claim| Gone { why, alike: String::new(), claim }).collect();
                    let owed = said["replacement-node-count"].as_u64().unwrap_or(0);
                    deeds.push(Deed { at, by: By::Disruption, made: Vec::new(), gone, owed });
                }
                _ => {}
            }
        }
        self.note_expired(&mut deeds, &log, mark);
        deeds.sort_by_key(|deed| deed.at);
        deeds
    }

    /// Its log is quiet about what expires.
    fn note_expired(&self, deeds: &mut Vec<Deed>, log: &str, mark: usize) {
        let said = |line: &str| serde_json::from_str::<Value>(line).ok();
        let time = |line: &str| said(line)?["time"].as_str()?.parse::<Timestamp>().ok();
        let since = log.split_at(mark).0.lines().rev().find_map(time);
        let commands = log.lines().filter(|line| line.contains("disrupting node(s)")).filter_map(said);
        let commanded: Vec<String> = commands.flat_map(|said| disrupted(&said).collect::<Vec<_>>()).collect();
        let mut expired: Vec<(Timestamp, &String)> = self
            .claims
            .iter()
            .filter_map(|(name, claim)| {
                let at: Timestamp = claim["metadata"]["deletionTimestamp"].as_str()?.parse().ok()?;
                (since.is_none_or(|since| at > since) && !commanded.contains(name)).then_some((at, name))
            })
            .collect();
        expired.sort_unstable();
        let mut last: Option<Deed> = None;
        for (at, claim) in expired {
            let gone = Gone { why: Why::Expired, alike: String::new(), claim: claim.clone() };
            match &mut last {
                Some(deed) if at.duration_since(deed.at) < ONE_GO => deed.gone.push(gone),
                _ => {
                    deeds.extend(last.take());
                    last = Some(Deed { at, by: By::Expiration, made: Vec::new(), gone: vec![gone], owed: 0 });
                }
            }
        }
        deeds.extend(last);
    }
}

fn note_made(deeds: &mut Vec<Deed>, at: Timestamp, name: String, by_provisioner: bool) {
    if !by_provisioner && let Some(command) = deeds.iter_mut().rev().find(|deed| deed.owed > 0) {
        command.owed -= 1;
        command.made.push(name);
        return;
    }
    match deeds.iter_mut().rev().find(|deed| deed.by == By::Provisioner) {
        Some(batch) if at.duration_since(batch.at) < ONE_GO => batch.made.push(name),
        _ => deeds.push(Deed { at, by: By::Provisioner, made: vec![name], gone: Vec::new(), owed: 0 }),
    }
}

/// Waits until every node of a pool is older than this; at once where there is none.
pub fn wait_for_age(cluster: &Cluster, pool: &str, age: Duration) {
    let claims = cluster.list(CLAIMS);
    let of_pool = claims.iter().filter(|claim| claim["metadata"]["labels"]["karpenter.sh/nodepool"] == pool);
    let made = of_pool.filter_map(|claim| claim["metadata"]["creationTimestamp"].as_str()?.parse::<Timestamp>().ok());
    let Some(last) = made.max() else { return };
    let since = Timestamp::now().duration_since(last);
    let left = SignedDuration::try_from(age).unwrap() - since;
    std::thread::sleep(Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1));
}

/// The claims of the nodes of a command.
fn disrupted(said: &Value) -> impl Iterator<Item = String> {
    let nodes = said["disrupted-nodes"].as_array().cloned().unwrap_or_default();
    nodes.into_iter().filter_map(|node| Some(node["NodeClaim"]["name"].as_str()?.to_owned()))
}

fn is_enough(foreseen: &Deeds, did: &Deeds) -> bool {
    did.made.len() >= foreseen.made.len() && did.gone.len() >= foreseen.gone.len()
}

fn made(claim: &Value) -> Made {
    let labels = &claim["metadata"]["labels"];
    Made::new(
        &labels["karpenter.sh/nodepool"],
        &labels["node.kubernetes.io/instance-type"],
        &labels["topology.kubernetes.io/zone"],
        &labels["karpenter.sh/capacity-type"],
        &claim["spec"]["resources"]["requests"],
    )
}
