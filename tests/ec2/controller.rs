//! The whole controller on the account of a test, with a cluster in memory.

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::{EmbeddedClock, EmbeddedCluster, EmbeddedForge, EmbeddedWorld};
use cutlist::api::approval_rules::ApprovalRules;
use cutlist::api::source::SourceFile;
use cutlist::controller::{Controller, Journal, Mode, Options, Ports, Shutdown};
use cutlist::core::plan::Revision;
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::definitions::GivenVariables;
use cutlist::ports::{PortError, Repository, RevisionContent};
use serde_json::{Value, json};

use super::account::Account;
use super::scene::{class, identity};

/// One revision, and no other.
pub struct Once(Option<RevisionContent>);

impl Repository for Once {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        Ok(self.0.take())
    }

    async fn changed(&mut self) {
        std::future::pending::<()>().await;
    }
}

/// A pool of the class, with these limits if there are to be any.
pub fn definitions(limits: Option<Value>) -> Once {
    let mut pool = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" }, "spec": {
        "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] }],
            "expireAfter": "Never" } },
        "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1h" } } });
    if let Some(limits) = limits {
        pool["spec"]["limits"] = limits;
    }
    let settings = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings", "metadata": { "name": "demo" },
        "spec": { "clusterName": "demo", "region": "us-east-1" } });
    let class = serde_json::to_value(class()).unwrap();
    let files = [("pool.yaml", pool), ("class.yaml", class), ("cutlist.yaml", settings)];
    let files = files.map(|(path, value)| SourceFile::new(path, serde_json::to_string_pretty(&value).unwrap()));
    let revision = Revision { id: "revision-1".to_owned(), reference: "main".to_owned() };
    Once(Some(RevisionContent::without_history(revision, "", files.into(), Vec::new())))
}

/// A Deployment whose pods never share a node.
pub fn apart(replicas: u32) -> Snapshot {
    let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } });
    let deployment = json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": { "replicas": replicas,
        "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } }, "spec": {
            "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }],
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } } } } });
    Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() }
}

pub type Played<'a> =
    Controller<Once, EmbeddedCluster, AwsCloud<&'a Account, EmbeddedClock>, EmbeddedForge, EmbeddedClock>;

/// Who only observes writes nothing into the account either.
pub fn controller<'a>(
    account: &'a Account,
    world: &EmbeddedWorld,
    repository: Once,
    mode: Mode,
    journal: Journal,
) -> Played<'a> {
    let settings = Settings {
        identity: identity(),
        queue: None,
        may_write: mode == Mode::Enforce,
        tries_launches: mode == Mode::Observe,
    };
    let ports = Ports {
        repository,
        cluster: world.cluster(),
        cloud: AwsCloud::new(account, world.clock(), settings),
        forge: EmbeddedForge::default(),
        clock: world.clock(),
    };
    let options = Options {
        mode,
        applies_definitions: true,
        lease_transitions: None,
        installation: "one".to_owned(),
        cluster_name: None,
        region: None,
        approval_floor: ApprovalRules::default(),
        allows_older_revisions: false,
        read: Box::new(|files| cutlist::definitions::read(files, &GivenVariables::default())),
        seed: 0,
        planner: Box::new(decide),
    };
    Controller::new(ports, options, journal, Shutdown::default())
}
