//! Instances that EC2 ends before their nodes join, under the whole controller: why is said, and calls of CreateFleet come to an end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::{EmbeddedForge, EmbeddedWorld, WorldSettings};
use cutlist::api::approval_rules::ApprovalRules;
use cutlist::api::source::SourceFile;
use cutlist::controller::events::Event;
use cutlist::controller::{Controller, Journal, Mode, Options, Ports, Shutdown};
use cutlist::core::catalog::Catalog;
use cutlist::core::plan::{EndCause, Revision};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::definitions::GivenVariables;
use cutlist::ports::{PortError, Repository, RevisionContent};
use serde_json::json;

use super::account::Account;
use super::scene::{account, class, run};
use super::{at, identity};

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

pub fn definitions() -> Once {
    let pool = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" }, "spec": {
        "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] }],
            "expireAfter": "Never" } },
        "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "1h" },
        "limits": { "cpu": "100" } } });
    let settings = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings", "metadata": { "name": "demo" },
        "spec": { "clusterName": "demo", "region": "us-east-1" } });
    let class = serde_json::to_value(class()).unwrap();
    let files = [("pool.yaml", pool), ("class.yaml", class), ("cutlist.yaml", settings)];
    let files = files.map(|(path, value)| SourceFile::new(path, serde_json::to_string_pretty(&value).unwrap()));
    let revision = Revision { id: "revision-1".to_owned(), reference: "main".to_owned() };
    Once(Some(RevisionContent::without_history(revision, "", files.into(), Vec::new())))
}

/// Pods that never share a node.
fn apart(replicas: u32) -> Snapshot {
    let term = json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } });
    let deployment = json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": { "replicas": replicas,
        "selector": { "matchLabels": { "app": "web" } }, "template": { "metadata": { "labels": { "app": "web" } }, "spec": {
            "containers": [{ "name": "main", "resources": { "requests": { "cpu": "1" } } }],
            "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } } } } });
    Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() }
}

/// What the controller says within so many minutes, on an account whose instances all end at once.
async fn events(account: &Account, minutes: u64) -> Vec<Event> {
    let world = EmbeddedWorld::new(WorldSettings::new(0, at(0)), Catalog::built_in("us-east-1").unwrap());
    world.with(|world| world.load(apart(4)));
    let settings = Settings { identity: identity(), queue: None, may_write: true };
    let ports = Ports {
        repository: definitions(),
        cluster: world.cluster(),
        cloud: AwsCloud::new(account, world.clock(), settings),
        forge: EmbeddedForge::default(),
        clock: world.clock(),
    };
    let options = Options {
        mode: Mode::Enforce,
        applies_definitions: true,
        lease_transitions: None,
        installation: "one".to_owned(),
        approval_floor: ApprovalRules::default(),
        allows_older_revisions: false,
        read: Box::new(|files| cutlist::definitions::read(files, &GivenVariables::default())),
        seed: 0,
        planner: Box::new(decide),
    };
    let said: Rc<RefCell<Vec<Event>>> = Rc::default();
    let heard = said.clone();
    let journal = Journal::new(move |_, event| heard.borrow_mut().push(event.clone()));
    let mut controller = Controller::new(ports, options, journal, Shutdown::default());
    let _ends = tokio::time::timeout(Duration::from_secs(minutes * 60), controller.run()).await;
    said.take()
}

#[test]
fn a_key_that_may_not_be_used_stops_the_pool_and_is_named() {
    run(async {
        let account = account();
        account.fleets.ends.set(Some(("Client.InvalidKMSKey.InvalidState", "The key arn:aws:kms:k is disabled")));
        let events = events(&account, 30).await;
        let ended: Vec<&String> = events
            .iter()
            .filter_map(|event| match event {
                Event::InstanceEnded { code, text, .. } if code == "Client.InvalidKMSKey.InvalidState" => Some(text),
                _ => None,
            })
            .collect();
        let (instances, calls) = (account.fleets.instances.borrow().len(), account.fleets.fleets());
        // Four at once, then one after five minutes, and one ten minutes after that.
        assert_eq!((ended.len(), instances), (6, 6), "{events:?}");
        assert!(calls <= 6, "{calls}");
        assert!(
            ended.iter().all(|text| text.contains("kms:CreateGrant") && text.contains("arn:aws:kms:k")),
            "{ended:?}"
        );
        let paused =
            |event: &&Event| matches!(event, Event::LaunchesPaused { node_pool, .. } if node_pool == "default");
        assert_eq!(events.iter().filter(paused).count(), 3);
        let plans = events.iter().rev().find_map(|event| match event {
            Event::PlanPosted { plan, .. } => Some(plan),
            _ => None,
        });
        let said = &plans.unwrap().ended_instances[0];
        assert_eq!((said.cause, said.code.as_str()), (EndCause::Encryption, "Client.InvalidKMSKey.InvalidState"));
        assert!(said.next_attempt_at.is_some());
    });
}
