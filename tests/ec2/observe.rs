//! Who only observes: its plans say what EC2 says of classes and instances, as those of who acts do, and nothing is written anywhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use cutlist::adapters::aws::api::actions::ACTIONS;
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::{EmbeddedClock, EmbeddedWorld, WorldSettings};
use cutlist::controller::events::Event;
use cutlist::controller::{Journal, Mode};
use cutlist::core::catalog::Catalog;
use cutlist::core::plan::{CloudFactCode, NoteCode, Plan, Step, StepKind};
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::Cloud;
use serde_json::{Value, json};

use super::account::Account;
use super::controller::{controller, definitions};
use super::scene::{account, at, class, identity, run};

const NODE: &str = "ip-10-0-0-1.ec2.internal";
const PROVIDER_ID: &str = "aws:///us-east-1a/i-0001";

fn labels() -> Value {
    json!({ "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand", "karpenter.sh/initialized": "true",
        "karpenter.sh/registered": "true", "node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1a",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": NODE })
}

/// A cluster that Karpenter runs: a node with its claim, and a class of which it says nothing.
fn cluster() -> Snapshot {
    let is_true = |type_: &str| json!({ "type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": at(-3_600).to_string() });
    let conditions = ["Launched", "Registered", "Initialized"].map(is_true);
    let claim = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "default-1", "uid": "default-1", "labels": labels(), "creationTimestamp": at(-3_600).to_string() },
        "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [],
            "expireAfter": "Never" },
        "status": { "providerID": PROVIDER_ID, "nodeName": NODE, "imageID": "ami-0",
            "conditions": conditions } });
    let room = json!({ "cpu": "2", "memory": "7Gi", "pods": "29" });
    let node = json!({ "metadata": { "name": NODE, "uid": NODE, "labels": labels(), "creationTimestamp": at(-3_600).to_string() },
        "spec": { "providerID": PROVIDER_ID },
        "status": { "capacity": room, "allocatable": room,
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": at(-3_600).to_string() }] } });
    Snapshot {
        node_claims: vec![serde_json::from_value(claim).unwrap()].into(),
        nodes: vec![serde_json::from_value(node).unwrap()].into(),
        node_classes: vec![class()].into(),
        ..Snapshot::default()
    }
}

/// The last plan that is posted within some minutes.
async fn plan(account: &Account, cluster: Snapshot) -> (Plan, Snapshot) {
    let world = EmbeddedWorld::new(WorldSettings::new(0, at(0)), Catalog::built_in("us-east-1").unwrap());
    world.with(|world| world.load(cluster));
    let said: Rc<RefCell<Option<Plan>>> = Rc::default();
    let heard = said.clone();
    let journal = Journal::new(move |_, event| {
        if let Event::PlanPosted { plan, .. } = event {
            heard.replace(Some(plan.as_ref().clone()));
        }
    });
    let limits = Some(json!({ "cpu": "100" }));
    let mut controller = controller(account, &world, definitions(limits), Mode::Observe, journal);
    let _ends = tokio::time::timeout(Duration::from_secs(180), controller.run()).await;
    (said.take().expect("a plan"), world.with(|world| world.snapshot()))
}

#[test]
fn plans_of_who_observes_say_what_ec2_says() {
    run(async {
        let account = account();
        let tags = json!({ "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default", "eks:eks-cluster-name": "demo" });
        let instance = json!({ "id": "i-0001", "state": "running", "instanceType": "m5.large", "zone": "us-east-1a", "imageId": "ami-0",
            "launchedAt": at(-3_600).to_string(), "subnetId": "subnet-a", "securityGroups": [{ "id": "sg-1", "name": "nodes" }], "tags": tags });
        account.things.borrow_mut().instances = vec![serde_json::from_value(instance).unwrap()];
        account
            .failures
            .borrow_mut()
            .insert("ec2:DescribePlacementGroups".to_owned(), "UnauthorizedOperation".to_owned());
        account.failures.borrow_mut().insert("servicequotas:GetServiceQuota".to_owned(), "AccessDenied".to_owned());
        let (plan, cluster) = Box::pin(plan(&account, cluster())).await;
        let fact = |code: CloudFactCode| plan.cloud_facts.iter().find(|fact| fact.code == code);
        let image = fact(CloudFactCode::ImageReplacesNodes).unwrap_or_else(|| panic!("{:#?}", plan.cloud_facts));
        assert_eq!(
            (image.before.as_slice(), image.after.as_deref()),
            ([String::from("ami-0")].as_slice(), Some("ami-1"))
        );
        let denied = fact(CloudFactCode::PermissionDenied).unwrap();
        assert_eq!(denied.subject, "permission servicequotas:GetServiceQuota");
        // Nothing of it is written: neither into the class nor into the account.
        assert_eq!(cluster.node_classes.first().unwrap().status, None);
        let writes = ["Create", "Delete", "Terminate", "Run", "Add", "Remove"];
        let calls = account.take_calls();
        // Dry runs write nothing; of RunInstances there is no other.
        let is_dry = |call: &str| call.ends_with(" dry run") || call.starts_with("ec2:RunInstances ");
        let wrote = calls.iter().filter(|call| {
            !is_dry(call) && writes.iter().any(|word| call.split(':').nth(1).unwrap().starts_with(word))
        });
        assert_eq!(wrote.count(), 0, "{calls:?}");
        for action in ["ec2:CreateLaunchTemplate dry run", "ec2:CreateFleet dry run", "ec2:RunInstances"] {
            assert_eq!(calls.iter().filter(|call| call.starts_with(action)).count(), 1, "{action}: {calls:?}");
        }
        assert!(account.profiles.borrow().is_empty() && account.templates.borrow().is_empty());
    });
}

/// A permission to launch that is missing is not found out by the first launch.
#[test]
fn who_observes_says_at_once_what_would_be_denied_to_who_launches() {
    run(async {
        let account = account();
        let refused = ["ec2:CreateFleet", "ec2:CreateLaunchTemplate"]
            .map(|it| (it.to_owned(), "UnauthorizedOperation".to_owned()));
        account.failures.borrow_mut().extend(refused);
        // Whatever else EC2 says of what is not there, it would be allowed.
        account.failures.borrow_mut().insert("ec2:RunInstances".to_owned(), "InvalidSubnetID.NotFound".to_owned());
        let clock = EmbeddedClock::starting_at(at(0));
        let settings = Settings { identity: identity(), queue: None, may_write: false, tries_launches: true };
        let cloud = AwsCloud::new(&account, clock, settings);
        let opening = cloud.open().await.unwrap();
        let lines: Vec<&str> = opening.missing.iter().map(|it| it.split(':').take(2).last().unwrap()).collect();
        assert_eq!(lines, ["CreateLaunchTemplate is denied", "CreateFleet is denied"], "{:?}", opening.missing);
        assert!(opening.missing[1].ends_with("it is for: launches instances"), "{:?}", opening.missing);
        assert!(opening.not_there.is_empty());
        // Plans say it until it is allowed.
        let denied = async || cloud.denied().await.into_iter().map(|it| it.action).collect::<Vec<_>>();
        assert_eq!(denied().await, ["ec2:CreateFleet", "ec2:CreateLaunchTemplate"]);
        account.failures.borrow_mut().clear();
        let gone = "InvalidLaunchTemplateName.NotFoundException".to_owned();
        account.failures.borrow_mut().insert("ec2:CreateFleet".to_owned(), gone);
        tokio::time::sleep(Duration::from_secs(601)).await;
        assert_eq!(denied().await, [""; 0]);
        assert!(account.templates.borrow().is_empty() && account.fleets.running().is_empty());
    });
}

/// Their instances bear our tag, and no Node here is theirs.
#[test]
fn that_another_cluster_has_the_same_name_is_said() {
    run(async {
        let account = account();
        let instance = |id: &str, installation: &str, launched: i64| {
            let tags = json!({ "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
                "eks:eks-cluster-name": "demo", "cutlist.dev/installation": installation });
            let value = json!({ "id": id, "state": "running", "instanceType": "m5.large", "zone": "us-east-1a", "imageId": "ami-1",
                "launchedAt": at(launched).to_string(), "subnetId": "subnet-a", "securityGroups": [{ "id": "sg-1", "name": "nodes" }], "tags": tags });
            serde_json::from_value(value).unwrap()
        };
        // Ours, one that shares this cluster, one that is just joining, and two of the other one.
        account.things.borrow_mut().instances = vec![
            instance("i-0009", "one", -3_600),
            instance("i-0001", "three", -3_600),
            instance("i-0002", "four", -60),
            instance("i-0003", "two", -3_600),
            instance("i-0004", "two", -7_200),
        ];
        let (plan, _) = Box::pin(plan(&account, cluster())).await;
        let notes: Vec<&str> = plan
            .notes
            .iter()
            .filter(|note| note.code == NoteCode::ClusterNameShared)
            .map(|note| note.text.as_str())
            .collect();
        assert_eq!(notes.len(), 1, "{:#?}", plan.notes);
        assert!(notes[0].starts_with("2 instances bear") && notes[0].contains("of installation two,"), "{notes:?}");
    });
}

/// Prices of spot that are half an hour old look like those of midnight otherwise.
#[test]
fn plans_say_how_old_prices_are() {
    run(async {
        let (plan, _) = Box::pin(plan(&account(), cluster())).await;
        let of_prices = plan.cloud_facts.iter().filter(|fact| fact.code == CloudFactCode::PricesAsked);
        let said: Vec<String> = of_prices.map(|fact| format!("{} {}", fact.subject, fact.text)).collect();
        assert_eq!(said.len(), 2, "{:#?}", plan.cloud_facts);
        assert!(said[0].starts_with("prices of spot of 2026-09-01T12:0"), "{said:?}");
        assert!(said[1].starts_with("prices on demand of 2026-09-01T12:0"), "{said:?}");
    });
}

/// What a class selects and is not there is told as soon as it is looked for, and once.
#[test]
fn a_class_whose_selectors_find_nothing_is_named_at_the_start() {
    for mode in [Mode::Observe, Mode::Enforce] {
        run(async {
            let account = account();
            account.things.borrow_mut().subnets.clear();
            let world = EmbeddedWorld::new(WorldSettings::new(0, at(0)), Catalog::built_in("us-east-1").unwrap());
            let said: Rc<RefCell<Vec<String>>> = Rc::default();
            let heard = said.clone();
            let journal = Journal::new(move |_, event| {
                if let Event::NodeClassNotReady { node_class, condition, reason, .. } = event {
                    heard.borrow_mut().push(format!("{node_class} {condition} {reason}"));
                }
            });
            let mut controller = controller(&account, &world, definitions(None), mode, journal);
            let _ends = tokio::time::timeout(Duration::from_secs(300), controller.run()).await;
            let said = said.borrow();
            assert_eq!(said.iter().filter(|it| it.starts_with("default SubnetsReady ")).count(), 1, "{said:?}");
        });
    }
}

/// What is not known of EC2 keeps nobody from planning, and is said.
#[test]
fn without_credentials_plans_are_made_of_what_the_program_knows() {
    for (code, is_planned) in [("NoCredentials", true), ("ExpiredToken", true), ("UnauthorizedOperation", false)] {
        run(async {
            let account = account();
            let all = ACTIONS.iter().map(|action| (action.name().to_owned(), code.to_owned()));
            account.failures.borrow_mut().extend(all);
            let pod = json!({ "metadata": { "name": "web", "namespace": "default", "uid": "web", "creationTimestamp": at(-60).to_string() },
                "spec": { "schedulerName": "default-scheduler",
                    "containers": [{ "name": "web", "resources": { "requests": { "cpu": "3" } } }] },
                "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] } });
            let pods = vec![serde_json::from_value(pod).unwrap()].into();
            let (plan, _) = Box::pin(plan(&account, Snapshot { pods, ..cluster() })).await;
            let is_for_it = |step: &Step| step.kind == StepKind::Create && step.pods == ["default/web"];
            assert_eq!(plan.steps.iter().any(is_for_it), is_planned, "{code}: {:#?} {:#?}", plan.pending, plan.steps);
            assert!(plan.cloud_facts.iter().any(|fact| fact.code == CloudFactCode::PermissionDenied), "{code}");
        });
    }
}
