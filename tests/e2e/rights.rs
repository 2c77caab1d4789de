//! Who may do what: a right that is missing, a right that is enough to observe, an approval, credentials that are wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use cutlist::adapters::git::{Changes, ScriptedRepository};
use cutlist::adapters::kubernetes::permissions::{Mode, PERMISSIONS};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster};
use crate::control_plane::{ControlPlane, Process};
use crate::interruptions::{prepare, settles, wait_for_log};
use crate::program::{self, Calls, Program};

const PATIENCE: Duration = Duration::from_secs(60);
/// An API server needs a moment until it goes by changed roles.
const RIGHTS_TAKE: Duration = Duration::from_millis(500);
pub const DEPLOYMENT: &str = "shop/web";
const SECONDARY: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: NAME }
spec:
  weight: WEIGHT
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME }
      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [spot] }]
  limits: { cpu: '0' }
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: NAME }
spec:
  amiSelectorTerms: [{ alias: al2023@v20240807 }]
  role: nodes
  tags: { weight: 'WEIGHT' }
  subnetSelectorTerms: [{ tags: { karpenter.sh/discovery: demo } }]
  securityGroupSelectorTerms: [{ tags: { karpenter.sh/discovery: demo } }]
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: { name: NAME }
spec:
  weight: WEIGHT
  requirements: [{ key: karpenter.sh/nodepool, operator: In, values: [NAME] }]
  priceAdjustment: '+1%'
---
apiVersion: cutlist.dev/v1alpha1
kind: DisruptionBudget
metadata: { name: NAME }
spec:
  nodes: '1WEIGHT'
---
apiVersion: v1
kind: PodTemplate
metadata: { name: NAME, namespace: shop }
template:
  metadata: { labels: { weight: 'WEIGHT' } }
  spec:
    containers: [{ name: a, image: registry.example/a, resources: { requests: { cpu: 10m } } }]
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: { name: NAME, namespace: shop }
spec:
  podTemplateRef: { name: NAME }
  replicas: 0
";

const BUDGET: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: web, namespace: shop }
spec: { minAvailable: 100%, selector: { matchLabels: { app: web } } }
";

/// What makes the program use a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Pods come.
    Launch,
    /// Nodes are replaced, and pods are evicted from them.
    Replace,
    /// Nodes are replaced whose pods no budget lets go, so that their time runs out.
    Force,
    /// Definitions are added.
    Define,
    Redefine,
    Undefine,
}

const DEEDS: [Deed; 6] = [Deed::Launch, Deed::Replace, Deed::Force, Deed::Define, Deed::Redefine, Deed::Undefine];

impl Deed {
    fn is_of_definitions(self) -> bool {
        matches!(self, Self::Define | Self::Redefine | Self::Undefine)
    }
}

/// Group, resource and verb.
type Right = (&'static str, &'static str, &'static str);

/// Every right to write that these deeds need: taken away with all others of one deed, missed and named, given back alone, used.
/// The program goes on where it stopped, to where it stops for the next.
pub fn each_right_is_missed_by_name(plane: &mut ControlPlane, mine: &[Deed]) {
    let cluster = plane.cluster();
    let (repository, program) = prepare(plane, &cluster);
    let roles = Roles::read(&cluster);
    let mut cutlist = program.start(plane);
    settles(&cluster, &program, "before", 0);
    let named = BTreeSet::new();
    let mut deeds = Deeds {
        cluster: &cluster,
        repository: &repository,
        program: &program,
        generation: 0,
        settings: settings(),
        nudges: 0,
        defined: false,
        label: None,
        replicas: 0,
        named,
        head: None,
    };
    let mut missed = Vec::new();
    for deed in mine.iter().copied() {
        let begin = Instant::now();
        deeds.prepare(deed);
        let mut missing = rights_of(deed);
        let all = missing.len();
        // The same words are not said again and again.
        let before = cutlist.log().len();
        roles.without(&cluster, &missing);
        std::thread::sleep(RIGHTS_TAKE);
        deeds.begin(deed);
        while !missing.is_empty() {
            let names = |right: &Right| cutlist.log().split_at(before).1.replace('\\', "").contains(&refusal(right));
            let named: Vec<Right> =
                cluster.wait(&format!("{deed:?}: the log names one of {missing:?}"), PATIENCE, |_| {
                    let named: Vec<Right> = missing.iter().copied().filter(names).collect();
                    if named.is_empty() { Err(cutlist.last_lines()) } else { Ok(named) }
                });
            cutlist.must_run();
            missing.retain(|right| !named.contains(right));
            roles.without(&cluster, &missing);
            // The last one is tried again without being asked to, some seconds later.
            if !missing.is_empty() && deed.is_of_definitions() {
                deeds.nudge();
            }
            missed.extend(named.iter().map(|(_, resource, verb)| format!("{verb} {resource}")));
        }
        deeds.finish(&format!("{deed:?} with all rights"));
        plane.say(format!("{deed:?}: {all} rights in {:.0} s", begin.elapsed().as_secs_f64()));
    }
    cutlist.must_run();
    let deleted = program::deleted(plane, "nodeclaims");
    let surprises: Vec<&String> = deleted.difference(&deeds.named).collect();
    assert!(deleted.is_empty() != mine.contains(&Deed::Replace) && surprises.is_empty(), "no plan named {surprises:?}");
    let of_deeds: usize = DEEDS.iter().map(|deed| rights_of(*deed).len()).sum();
    assert_eq!(of_deeds, rights().count(), "each right belongs to one deed");
    plane.say(format!("{} rights were missed by name: {}", missed.len(), missed.join(", ")));
}

/// The API server's own words.
fn refusal((_, resource, verb): &Right) -> String {
    format!("cannot {verb} resource \"{resource}\"")
}

/// All rights to write.
fn rights() -> impl Iterator<Item = Right> {
    let table = PERMISSIONS.iter().filter(|permission| permission.mode == Mode::Enforce);
    table.flat_map(|permission| {
        permission
            .resources
            .iter()
            .flat_map(move |resource| permission.verbs.iter().map(move |verb| (permission.group, *resource, *verb)))
    })
}

/// Those that a deed needs.
fn rights_of(deed: Deed) -> Vec<Right> {
    let is_of = |(_, resource, verb): &Right| {
        let deed_of = match (*resource, *verb) {
            ("nodeclaims", "create" | "patch")
            | ("nodeclaims/status" | "pods/status" | "nodepools/status", _)
            | ("nodes", "patch") => Deed::Launch,
            ("nodeclaims" | "nodes" | "pods/eviction", _) => Deed::Replace,
            ("pods", _) => Deed::Force,
            ("ec2nodeclasses/status", _) | (_, "create") => Deed::Define,
            (_, "patch") => Deed::Redefine,
            _ => Deed::Undefine,
        };
        deed_of == deed
    };
    rights().filter(is_of).collect()
}

struct Deeds<'a> {
    cluster: &'a Cluster,
    repository: &'a ScriptedRepository,
    program: &'a Program,
    /// Of the pool's label, and of everything's name.
    generation: u32,
    /// `cutlist.yaml`, and how often it was committed for the commit's sake.
    settings: String,
    nudges: u32,
    /// Whether the definitions are there that are added.
    defined: bool,
    /// That of the pool's label.
    label: Option<String>,
    replicas: u32,
    /// Every claim that a step of a plan was about.
    named: BTreeSet<String>,
    /// The last commit.
    head: Option<String>,
}

impl Deeds<'_> {
    /// What has to be there before.
    fn prepare(&mut self, deed: Deed) {
        let replicas = match deed {
            Deed::Launch => 0,
            Deed::Replace | Deed::Force => 4,
            Deed::Define | Deed::Redefine | Deed::Undefine => self.replicas,
        };
        self.scale(replicas);
        settles(self.cluster, self.program, &format!("before {deed:?}"), replicas);
        if matches!(deed, Deed::Redefine | Deed::Undefine) && !self.defined {
            self.begin(Deed::Define);
            self.finish("before definitions change");
        }
        if deed == Deed::Force {
            // Only claims that are made with a time that can run out have one.
            self.replace_nodes("5s");
            self.finish("before pods are kept");
            self.cluster.apply_all(BUDGET);
        }
    }

    fn begin(&mut self, deed: Deed) {
        match deed {
            Deed::Launch => self.scale(4),
            Deed::Replace => self.replace_nodes("1h"),
            Deed::Force => self.replace_nodes("5s"),
            Deed::Define => {
                self.generation += 1;
                self.define(1);
            }
            Deed::Redefine => self.define(2),
            Deed::Undefine => {
                self.defined = false;
                self.commit("secondary.yaml", None);
            }
        }
    }

    /// By another label of the pool; the new ones have this time to drain.
    fn replace_nodes(&mut self, termination_grace_period: &str) {
        self.generation += 1;
        self.label = Some(self.generation.to_string());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label/nodepool.yaml");
        let text = std::fs::read_to_string(folder).unwrap();
        let text = text.replace("team: shop", &format!("team: shop, generation: \"{}\"", self.generation));
        let period = format!("expireAfter: Never\n      terminationGracePeriod: {termination_grace_period}");
        self.commit("nodepool.yaml", Some(text.replace("expireAfter: Never", &period)));
    }

    fn define(&mut self, weight: u32) {
        self.defined = true;
        let name = format!("secondary-{}", self.generation);
        let text = SECONDARY.replace("NAME", &name).replace("WEIGHT", &weight.to_string());
        self.commit("secondary.yaml", Some(text));
    }

    fn commit(&mut self, path: &str, text: Option<String>) {
        let mut changes = Changes::new();
        let paths = if path == "secondary.yaml" && text.is_some() { ", secondary.yaml" } else { "" };
        if path == "secondary.yaml" {
            self.settings = settings().replace(", ec2nodeclass.yaml", &format!(", ec2nodeclass.yaml{paths}"));
            changes.insert("cutlist.yaml".to_owned(), Some(self.settings.clone().into_bytes()));
        }
        changes.insert(path.to_owned(), text.map(String::into_bytes));
        self.head = Some(self.repository.commit(&changes, path, Timestamp::now()).unwrap());
    }

    /// A commit that changes nothing, for which everything is looked at again.
    fn nudge(&mut self) {
        self.nudges += 1;
        self.commit("cutlist.yaml", Some(format!("{}# {}\n", self.settings, self.nudges)));
    }

    fn scale(&mut self, replicas: u32) {
        self.replicas = replicas;
        program::scale(self.cluster, DEPLOYMENT, replicas);
    }

    /// Waits until what was begun is done: nodes are of the pool as it is and settled, and definitions in the cluster are those
    /// of the last commit.
    fn finish(&mut self, what: &str) {
        let label = self.label.clone();
        self.cluster.wait(what, PATIENCE, |cluster| {
            let claims = cluster.list("/apis/karpenter.sh/v1/nodeclaims");
            let is_old = |claim: &&Value| claim["metadata"]["labels"]["generation"].as_str() != label.as_deref();
            claims.iter().find(is_old).map_or(Ok(()), |claim| Err(format!("{claim:#}")))
        });
        settles(self.cluster, self.program, what, self.replicas);
        let head = self.head.clone();
        self.cluster.wait(what, PATIENCE, |cluster| {
            let pools = cluster.list("/apis/karpenter.sh/v1/nodepools");
            let revision = |pool: &Value| pool["metadata"]["annotations"]["cutlist.dev/revision"].clone();
            let behind = pools.iter().find(|pool| head.is_some() && revision(pool).as_str() != head.as_deref());
            match behind {
                Some(pool) => Err(format!("{pool:#}")),
                None if pools.is_empty() => Err("no pool was applied yet".to_owned()),
                None => Ok(()),
            }
        });
        let plans = self.cluster.list("/apis/cutlist.dev/v1alpha1/nodeplans");
        self.named.extend(plans.iter().flat_map(names_of_steps));
    }
}

fn settings() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label/cutlist.yaml");
    std::fs::read_to_string(path).unwrap()
}

fn names_of_steps(plan: &Value) -> Vec<String> {
    let steps = plan["spec"]["plan"]["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().filter_map(|step| step["nodeClaim"].as_str().map(str::to_owned)).collect()
}

/// The cluster roles as they were, to take a right away and to give it back.
struct Roles(Vec<Value>);

impl Roles {
    fn read(cluster: &Cluster) -> Self {
        let names = ["cutlist-observe", "cutlist-enforce", "embedded-cloud"];
        Self(names.iter().map(|name| cluster.get(&Self::path(name)).unwrap()).collect())
    }

    fn path(name: &str) -> String {
        format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}")
    }

    fn write(cluster: &Cluster, role: &Value, rules: &[Value]) {
        let name = role["metadata"]["name"].as_str().unwrap();
        cluster.patch(&Self::path(name), &json!({ "rules": rules })).unwrap();
    }

    /// All rights but these.
    fn without(&self, cluster: &Cluster, missing: &[Right]) {
        for role in &self.0 {
            let texts = |rule: &Value, field: &str| -> Vec<String> {
                rule[field].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
            };
            let mut rules = Vec::new();
            for rule in role["rules"].as_array().unwrap() {
                for (group, resource) in texts(rule, "apiGroups").iter().flat_map(|group| {
                    texts(rule, "resources").into_iter().map(move |resource| (group.clone(), resource))
                }) {
                    let is_left =
                        |verb: &String| !missing.contains(&(group.as_str(), resource.as_str(), verb.as_str()));
                    let verbs: Vec<String> = texts(rule, "verbs").into_iter().filter(is_left).collect();
                    if !verbs.is_empty() {
                        rules.push(json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs }));
                    }
                }
            }
            Self::write(cluster, role, &rules);
        }
    }
}

/// Beside Karpenter: plans are posted, nothing else is written, and carrying out is refused.
pub fn observes_beside_karpenter(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, files) = scenario();
    let program = Program::prepare_observer(plane, &cluster, repository.path().to_owned());
    let renewed = format!("{:.6}", Timestamp::now());
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": "karpenter-leader-election", "namespace": "kube-system" },
        "spec": { "holderIdentity": "karpenter-1", "leaseDurationSeconds": 600, "renewTime": renewed },
    });
    cluster.apply(&lease, Apply::ForReal).unwrap();
    // What Karpenter has of its own definitions.
    for name in ["nodepool.yaml", "ec2nodeclass.yaml"] {
        cluster.apply_all(str::from_utf8(&files[name]).unwrap());
    }
    cluster.apply_all(&web());
    program::scale(&cluster, DEPLOYMENT, 4);
    let mut refused = program.command("run").args(["--cloud", "embedded"]).output().unwrap();
    let said = String::from_utf8(std::mem::take(&mut refused.stderr)).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("kube-system/karpenter-leader-election, held by karpenter-1"), "{said}");
    assert!(said.contains("--mode observe"), "{said}");
    let mut observer = program.start(plane);
    let plan = cluster.wait("a plan for four pods", PATIENCE, |cluster| {
        let plans = cluster.list("/apis/cutlist.dev/v1alpha1/nodeplans");
        let creates = |plan: &Value| plan["spec"]["nodesCreated"].as_i64().is_some_and(|number| number > 0);
        // Its text comes with its status, a moment later.
        let meant = plans.iter().find(|plan| creates(plan) && plan["status"]["text"].is_string());
        meant.cloned().ok_or_else(|| format!("{} plans\n{}", plans.len(), observer.last_lines()))
    });
    std::thread::sleep(Duration::from_secs(5));
    observer.must_run();
    assert!(plan["status"]["text"].as_str().unwrap().contains("4 pods"), "{plan:#}");
    assert!(cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty() && cluster.list("/api/v1/nodes").is_empty());
    let calls = Calls::so_far(plane);
    let surprising = calls.writes_beside(&["nodeplans", "nodeplans/status", "events"]);
    assert!(surprising.is_empty(), "{surprising:?}");
    plane.say(calls.summary());
}

/// The plan waits for somebody who says so on the command line.
pub fn approved_on_the_command_line(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, files) = scenario();
    let settings = format!("{}  approval: {{ provision: manual }}\n", str::from_utf8(&files["cutlist.yaml"]).unwrap());
    let changes = Changes::from([("cutlist.yaml".to_owned(), Some(settings.into_bytes()))]);
    repository.commit(&changes, "Ask before nodes are created", Timestamp::now()).unwrap();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    cluster.apply_all(&web());
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    let name = cluster.wait("a plan that waits", PATIENCE, |cluster| {
        let plans = cluster.list("/apis/cutlist.dev/v1alpha1/nodeplans");
        let waits = plans.iter().find(|plan| plan["status"]["phase"] == "WaitsForApproval");
        let name = waits.map(|plan| plan["metadata"]["name"].as_str().unwrap().to_owned());
        name.ok_or_else(|| cutlist.last_lines())
    });
    std::thread::sleep(Duration::from_secs(3));
    assert!(cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty(), "nobody has approved");
    let admin = plane.kubeconfig_with("approver", "admin-token");
    let approve_with = |plan: &str, further: &[&str]| {
        let mut command = std::process::Command::new(program::program());
        command.args(["approve", plan, "--kubeconfig"]).arg(&admin).args(further);
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let approve = |plan: &str| approve_with(plan, &[]);
    let (code, said) = approve_with(&name, &["--by", "ana"]);
    assert!(code == Some(1) && said.contains("knows you as admin, not as ana"), "{said}");
    let (code, said) = approve("nothing-of-the-kind");
    assert!(code == Some(1) && said.contains("there is no nodeplan nothing-of-the-kind"), "{said}");
    let (code, said) = approve(&name);
    assert_eq!((code, said.trim()), (Some(0), format!("nodeplan {name} is approved by admin").as_str()));
    settles(&cluster, &program, "approved", 4);
    cutlist.must_run();
    let (code, said) = approve(&name);
    assert!(code == Some(1) && said.contains("does not wait for approval"), "{said}");
}

/// At the start each is an error that says what to do; later it is said, and nothing breaks.
pub fn says_what_is_wrong_with_credentials(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, _) = scenario();
    let admin = plane.kubeconfig_with("somebody", "admin-token");
    let nobody = plane.kubeconfig_with("nobody", "expired");
    let tries = [
        ("an expired token", &nobody, &[] as &[&str], ["Unauthorized", "is the token expired?"]),
        ("a wrong context", &admin, &["--context", "elsewhere"], ["elsewhere", "kubectl config get-contexts"]),
        ("no definitions", &admin, &[], ["NodePool", "cutlist crds"]),
    ];
    for (what, kubeconfig, further, words) in tries {
        let mut command = std::process::Command::new(program::program());
        command.arg("plan").arg(repository.path()).arg("--kubeconfig").arg(kubeconfig).args(further);
        let output = command.output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        let code = output.status.code();
        // Planning needs none of our kinds; it notes that they are missing.
        let is_note = what == "no definitions";
        assert_eq!(code, Some(i32::from(!is_note)), "{what}: {said}");
        let words: &[&str] = if is_note { &["nodepools.karpenter.sh"] } else { &words };
        assert!(words.iter().all(|word| said.contains(word)), "{what}: {said}");
        let mut command = std::process::Command::new(program::program());
        command.arg("run").arg(repository.path()).args(["--cloud", "embedded", "--kubeconfig"]).arg(kubeconfig);
        let mut running = plane.run(&format!("cutlist-{}", what.replace(' ', "-")), {
            command.args(further);
            command
        });
        wait_for_words(&cluster, what, &mut running, &words_of_run(what));
    }
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "before", 4);
    // The token is worth nothing from now on.
    plane.tool("kubectl", &["delete", "serviceaccount", "cutlist", "--namespace", "cutlist"]).unwrap();
    // The API server remembers for ten seconds that it was good.
    std::thread::sleep(Duration::from_secs(12));
    program::scale(&cluster, DEPLOYMENT, 0);
    wait_for_log(&cluster, &cutlist, "Unauthorized");
    cutlist.must_end("the lease was not renewed");
    assert_eq!(cluster.list("/api/v1/nodes").len(), program.instances().len(), "nothing is leaked or lost");
}

fn words_of_run(what: &str) -> [&'static str; 2] {
    match what {
        "an expired token" => ["Unauthorized", "is the token expired?"],
        "a wrong context" => ["elsewhere", "kubectl config get-contexts"],
        _ => ["nodeplans.cutlist.dev", "--install-crds"],
    }
}

fn wait_for_words(cluster: &Cluster, what: &str, process: &mut Process, words: &[&str]) {
    cluster.wait(what, PATIENCE, |_| {
        let said = process.log();
        if words.iter().all(|word| said.contains(word)) { Ok(()) } else { Err(said) }
    });
}

/// The repository of the scenario with one pool, and its files.
pub fn scenario() -> (ScriptedRepository, std::collections::BTreeMap<String, Vec<u8>>) {
    let files = crate::played::files(&folder());
    (ScriptedRepository::create(&files, "Begin", Timestamp::now()).unwrap(), files)
}

pub fn web() -> String {
    std::fs::read_to_string(folder().join("objects/web.yaml")).unwrap()
}

/// The pool of the scenario with another label.
pub fn patched_pool() -> Vec<u8> {
    std::fs::read(folder().join("patches/nodepool.yaml")).unwrap()
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios/pool-label")
}
