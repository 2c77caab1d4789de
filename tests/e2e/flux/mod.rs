//! Flux's own controllers on the control plane, with a Git server that wants a password: what they fetch and apply, and what
//! Cutlist makes of it.
//!
//! Their programs and definitions are those of `tests/gitops/build`; `make e2e-gitops` runs these cases.

mod applied;
mod artifacts;
mod listener;
mod told;
mod waits;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cutlist::adapters::git::{Changes, ScriptedRepository};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster};
use crate::control_plane::{ControlPlane, Process, free_ports};
use crate::program::Program;
use crate::servers::HttpServer;
use listener::Listener;

pub use applied::flux_applies_and_cutlist_plans;
pub use artifacts::{flux_artifacts_become_plans, flux_artifacts_that_are_forged, flux_artifacts_that_nobody_serves};
pub use told::{flux_is_told_in_its_own_form, notification_controller_tells_it_on};
pub use waits::flux_sources_that_have_nothing_new;

const PATIENCE: Duration = Duration::from_secs(60);
/// For what must not happen: longer than Cutlist takes for an artifact, and than its first tries at one that can not be had.
const QUIET: Duration = Duration::from_secs(4);
const SOURCE: &str = "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/nodes";
const CLAIMS: &str = "/apis/karpenter.sh/v1/nodeclaims";
const POOL: &str = "/apis/karpenter.sh/v1/nodepools/default";
const PLANS: &str = "/apis/cutlist.dev/v1alpha1/nodeplans";
const PASSWORD: &str = "of-flux-alone";
const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: { name: flux-system }
---
apiVersion: v1
kind: Secret
metadata: { name: git, namespace: flux-system }
stringData: { username: flux, password: of-flux-alone }
";

/// A repository behind a Git server, source-controller, and what hears its events.
struct Flux {
    repository: ScriptedRepository,
    git: HttpServer,
    storage: PathBuf,
    address: String,
    source_controller: Process,
    events: Listener,
    asked: Cell<u32>,
}

impl Flux {
    /// With a repository of one commit; nothing follows it yet.
    fn start(plane: &ControlPlane, cluster: &Cluster, repository: ScriptedRepository) -> Self {
        let definitions = plane.programs().join("flux-definitions");
        assert!(
            definitions.is_dir(),
            "tests/gitops/build {} makes it; `make e2e-gitops` does",
            plane.programs().display()
        );
        plane.tool("kubectl", &["apply", "--server-side", "-f", definitions.to_str().unwrap()]).unwrap();
        plane.tool("kubectl", &["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"]).unwrap();
        cluster.apply_all(NAMESPACE);
        let git = HttpServer::start(repository.path().parent().unwrap());
        git.require(&format!("Basic {}", STANDARD.encode(format!("flux:{PASSWORD}"))));
        let [port] = free_ports();
        let address = format!("127.0.0.1:{port}");
        let storage = plane.folder().join("artifacts");
        std::fs::create_dir(&storage).unwrap();
        let events = Listener::start();
        let source_controller = source_controller(plane, &storage, &address, &events);
        Self { repository, git, storage, address, source_controller, events, asked: Cell::new(0) }
    }

    fn url(&self) -> String {
        self.git.url(self.repository.path().file_name().unwrap().to_str().unwrap())
    }

    /// A GitRepository that is asked for news when somebody says so, and not before.
    fn git_repository(&self) -> Value {
        json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": { "name": "nodes", "namespace": "flux-system" },
            "spec": {
                "interval": "1h", "timeout": "20s", "url": self.url(),
                "ref": { "branch": "main" }, "secretRef": { "name": "git" },
            },
        })
    }

    /// Begins to follow the repository; waits for the first artifact.
    fn follow(&self, cluster: &Cluster) {
        cluster.apply(&self.git_repository(), Apply::ForReal).unwrap();
        self.has_fetched(cluster, &self.head());
    }

    /// The commit that `main` names.
    fn head(&self) -> String {
        let git = git2::Repository::open(self.repository.path()).unwrap();
        git.find_reference("refs/heads/main").unwrap().peel_to_commit().unwrap().id().to_string()
    }

    /// Gives the commit.
    fn commit(&self, path: &str, text: &str) -> String {
        let changes = Changes::from([(path.to_owned(), Some(text.as_bytes().to_vec()))]);
        self.repository.commit(&changes, &format!("Change {path}"), Timestamp::now()).unwrap()
    }

    /// Asks for news, as `flux reconcile source git nodes` does.
    fn ask(&self, cluster: &Cluster) -> String {
        self.asked.set(self.asked.get() + 1);
        let token = self.asked.get().to_string();
        let annotations = json!({ "reconcile.fluxcd.io/requestedAt": token });
        cluster.patch(SOURCE, &json!({ "metadata": { "annotations": annotations } })).unwrap();
        token
    }

    /// Asks, and waits until it was looked.
    fn reconcile(&self, cluster: &Cluster) {
        let token = self.ask(cluster);
        cluster.wait("source-controller has looked", PATIENCE, |cluster| {
            let status = cluster.get(SOURCE).unwrap()["status"].take();
            let is_done = status["lastHandledReconcileAt"] == json!(token);
            if is_done { Ok(()) } else { Err(format!("{status:#}\n{}", self.source_controller.last_lines())) }
        });
    }

    /// Asks, and waits for the artifact of this commit.
    fn fetch(&self, cluster: &Cluster, commit: &str) {
        self.ask(cluster);
        self.has_fetched(cluster, commit);
    }

    fn has_fetched(&self, cluster: &Cluster, commit: &str) {
        cluster.wait(&format!("an artifact of {commit}"), PATIENCE, |cluster| {
            let status = cluster.get(SOURCE).unwrap()["status"].take();
            let is_there = status["artifact"]["revision"] == json!(format!("main@sha1:{commit}"));
            if is_there { Ok(()) } else { Err(format!("{status:#}\n{}", self.source_controller.last_lines())) }
        });
    }

    /// Where source-controller keeps what it serves for this commit.
    fn archive_of(&self, commit: &str) -> PathBuf {
        self.storage.join(format!("gitrepository/flux-system/nodes/{commit}.tar.gz"))
    }

    /// Starts it again, at the same address and with what it kept.
    fn restart(&mut self, plane: &ControlPlane) {
        self.source_controller = source_controller(plane, &self.storage, &self.address, &self.events);
    }
}

fn source_controller(plane: &ControlPlane, storage: &Path, address: &str, events: &Listener) -> Process {
    let mut command = controller(plane, "source-controller", events);
    command.arg("--storage-path").arg(storage).args(["--storage-addr", address, "--storage-adv-addr", address]);
    plane.run("source-controller", command)
}

/// One of Flux's controllers, as somebody who may do everything: its rights are not what is tried.
fn controller(plane: &ControlPlane, name: &str, events: &Listener) -> Command {
    let mut command = Command::new(plane.programs().join(name));
    command.env("KUBECONFIG", plane.kubeconfig_of_admin()).env("RUNTIME_NAMESPACE", "flux-system");
    // The working folder for clones.
    command.env("TMPDIR", plane.folder()).env("HOME", plane.folder());
    command.args(["--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--watch-all-namespaces"]);
    command.args(["--events-addr", &events.url()]);
    command
}

/// Cutlist with the rights and the arguments of `deploy/kustomize/flux` on top of one of the other folders.
fn program(plane: &ControlPlane, cluster: &Cluster, folder: &str) -> Program {
    let made = plane.folder().join("kustomization");
    std::fs::create_dir(&made).unwrap();
    // Kustomize takes relative paths.
    let up = "../".repeat(made.canonicalize().unwrap().components().count() - 1);
    let root = format!("{up}{}", env!("CARGO_MANIFEST_DIR").trim_start_matches('/'));
    let text = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("{root}/{folder}")], "components": [format!("{root}/deploy/kustomize/flux")],
    });
    std::fs::write(made.join("kustomization.yaml"), text.to_string()).unwrap();
    let made = made.to_str().unwrap();
    let rendered = plane.tool("kubectl", &["kustomize", made]).unwrap();
    let deployment = crate::cluster::documents(&rendered).into_iter().find(|object| object["kind"] == "Deployment");
    let arguments = deployment.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"].take();
    let of_source = |argument: &&str| argument.starts_with("--source");
    let arguments: Vec<&str> =
        arguments.as_array().unwrap().iter().filter_map(Value::as_str).filter(of_source).collect();
    assert_eq!(arguments, ["--source=flux", "--source-ref=GitRepository/nodes.flux-system"]);
    Program::from_folder(plane, cluster, made, arguments.iter().map(Into::into).collect())
}

/// Until the log, as of a place in it, has all of these words.
fn says(cluster: &Cluster, process: &Process, since: usize, words: &[&str]) {
    cluster.wait(&format!("the log says {words:?}"), PATIENCE, |_| {
        let log = process.log();
        let said = log.get(since..).unwrap_or_default();
        if words.iter().all(|word| said.contains(word)) { Ok(()) } else { Err(process.last_lines()) }
    });
}

/// The revision whose definitions are in the cluster.
fn applied(cluster: &Cluster, revision: &str) {
    cluster.wait(&format!("the pool of {revision}"), PATIENCE, |cluster| {
        let pool = cluster.get(POOL).map_err(|error| error.to_string())?;
        let found = &pool["metadata"]["annotations"]["cutlist.dev/revision"];
        if found.as_str() == Some(revision) { Ok(()) } else { Err(format!("{found}")) }
    });
}

/// The plans of a revision, in the order in which they were posted.
fn plans_of(cluster: &Cluster, revision: &str) -> Vec<Value> {
    let mut plans = cluster.list(PLANS);
    plans.retain(|plan| plan["spec"]["revision"]["id"] == json!(revision));
    plans.sort_by_key(|plan| plan["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned());
    plans
}

fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Nothing of this is other than it was, for as long as somebody might change it.
fn stays<T: PartialEq + std::fmt::Debug>(what: &str, mut look: impl FnMut() -> T) {
    let (before, begin) = (look(), Instant::now());
    while begin.elapsed() < QUIET {
        let now = look();
        assert_eq!(before, now, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}
