//! What the adapter does with EC2's API, seen from both sides: what the controller is told, and what is in the account.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cutlist::adapters::aws::calls::{Calls, Connection};
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::aws::resolution::cluster::Identity;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::node_claim::NodeClaim;
use cutlist::ports::{Clock, Cloud, PortErrorKind};
use jiff::Timestamp;
use serde_json::json;

use super::claims::{alternatives, claims, pass, provider_id};
use super::moto::{Moto, REGION, Raw};
use super::proxy::{DENIES, Fault, Proxy, THROTTLES};

pub const IMAGES: &str = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023";

#[derive(Clone)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// An account with a cluster, and who launches its nodes.
pub struct Scene<'m> {
    pub raw: Raw<'m>,
    pub proxy: Proxy,
    pub cluster: String,
}

pub fn scene<'m>(moto: &'m Moto, account: &'m str) -> Scene<'m> {
    Scene::new(moto, account)
}

pub type Process = AwsCloud<Arc<Calls>, SystemClock>;

impl<'m> Scene<'m> {
    fn new(moto: &'m Moto, account: &'m str) -> Self {
        let raw = moto.account(account);
        let cluster = format!("cluster-{account}");
        raw.furnish(&cluster);
        let proxy = Proxy::start(&moto.address, account);
        proxy.parameter(&format!("{IMAGES}/x86_64/standard/recommended/image_id"), "ami-0a0a0a0a0a0a0a0a0");
        proxy.parameter(&format!("{IMAGES}/arm64/standard/recommended/image_id"), "ami-0b0b0b0b0b0b0b0b0");
        Self { raw, proxy, cluster }
    }

    pub async fn process(&self) -> Process {
        let place = Connection {
            region: Some(REGION.to_owned()),
            endpoint_url: Some(self.proxy.address.clone()),
            // What moto does not know is a fault of the server's, which the SDK would try again.
            single_attempt: true,
            ..Connection::default()
        };
        let identity = Identity {
            cluster: self.cluster.clone(),
            region: REGION.to_owned(),
            installation: "one".to_owned(),
            kubernetes_version: None,
        };
        let settings = Settings { identity, queue: Some(self.cluster.clone()), may_write: true, tries_launches: false };
        AwsCloud::new(Arc::new(Calls::connect(&place).await), SystemClock, settings)
    }

    pub fn class(&self) -> EC2NodeClass {
        let by_tag = json!([{ "tags": { "karpenter.sh/discovery": self.cluster } }]);
        let value = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": { "name": "default", "generation": 1 },
            "spec": { "role": "nodes", "amiSelectorTerms": [{ "alias": "al2023@latest" }],
                "subnetSelectorTerms": by_tag, "securityGroupSelectorTerms": by_tag } });
        serde_json::from_value(value).unwrap()
    }

    /// Each claim has an instance of its own, and there is no other.
    pub fn assert_paired(&self, claims: &[NodeClaim]) {
        let of_claims: BTreeSet<String> =
            claims.iter().filter_map(provider_id).map(|id| id.rsplit('/').next().unwrap().to_owned()).collect();
        assert_eq!(of_claims.len(), claims.len(), "each has its own");
        assert_eq!(self.raw.running().into_keys().collect::<BTreeSet<_>>(), of_claims);
    }
}

pub fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

const OFFERINGS: [&str; 3] = ["m5.large a spot", "m6i.large b spot", "c5.large b on-demand"];

pub fn the_catalog_is_read(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000001");
        let cloud = scene.process().await;
        let opening = cloud.open().await.unwrap();
        // There is no queue yet.
        assert_eq!((opening.caller.account.as_str(), opening.missing.len()), ("100000000001", 1), "{opening:?}");
        let catalog = cloud.catalog().await.unwrap();
        assert!(catalog.instance_types.len() > 500, "{} types", catalog.instance_types.len());
        let one = catalog.instance_types.iter().find(|one| one.name == "m5.large").unwrap();
        let zones: BTreeSet<&str> = one.offerings.iter().map(|it| it.zone.as_str()).collect();
        assert!(zones.contains("us-east-1a") && zones.len() >= 5, "{zones:?}");
        assert!(one.offerings.iter().any(|it| it.capacity_type == "spot" && it.available));
        // Moto has no Price List.
        let troubles = cloud.troubles().await;
        assert!(troubles.iter().any(|text| text.starts_with("on-demand prices are not live")), "{troubles:?}");
        assert!(Arc::ptr_eq(&catalog, &cloud.catalog().await.unwrap()));
        assert_eq!(scene.proxy.take("DescribeInstanceTypes").len(), 1, "it is asked for once");
    });
}

pub fn a_class_is_resolved(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000002");
        let cloud = scene.process().await;
        let facts = cloud.describe(&scene.class()).await.unwrap();
        for condition in &facts.conditions {
            assert_eq!(condition.status, Some(true), "{condition:?}");
        }
        assert!(facts.zones.len() >= 5 && facts.free_addresses.len() == facts.zones.len(), "{facts:?}");
        let found = facts.found.unwrap();
        let images: Vec<&str> = found.amis.iter().map(|image| image.id.as_str()).collect();
        assert_eq!(images, ["ami-0b0b0b0b0b0b0b0b0", "ami-0a0a0a0a0a0a0a0a0"]);
        assert_eq!(found.security_groups.len(), 1);
        let profile = found.instance_profile.unwrap();
        let said = scene.raw.form("iam", "GetInstanceProfile", &[("InstanceProfileName", &profile)]).ok();
        assert_eq!(said.all("RoleName"), ["nodes"]);
        // Again costs nothing, and another process makes no second profile.
        scene.proxy.heals();
        let other = scene.process().await;
        other.describe(&scene.class()).await.unwrap();
        assert_eq!(scene.proxy.take("CreateInstanceProfile").len(), 1);
    });
}

pub fn claims_get_instances_that_are_found_and_ended(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000003");
        let (cloud, class) = (scene.process().await, scene.class());
        cloud.describe(&class).await.unwrap();
        let mut claims = claims("launch", 12);
        let failures = pass(&cloud, &class, &mut claims, &alternatives(&OFFERINGS), 12).await;
        assert!(failures.is_empty(), "{failures:?}");
        scene.assert_paired(&claims);
        assert_eq!(
            scene
                .proxy
                .take("CreateFleet")
                .iter()
                .filter(|call| !call.fields.contains_key("DryRun") || call.fields["DryRun"] == "false")
                .count(),
            1
        );
        let listed = cloud.instances().await.unwrap();
        assert_eq!(listed.len(), 12);
        for instance in &listed {
            assert_eq!(
                (instance.launch_id.as_str(), instance.node_pool.as_str()),
                ("launch", "launch"),
                "{instance:?}"
            );
            assert_eq!((instance.instance_type.as_str(), instance.zone.as_str()), ("m5.large", "us-east-1a"));
            assert_eq!(
                (instance.capacity_type.as_str(), instance.image_id.as_str()),
                ("spot", "ami-0a0a0a0a0a0a0a0a0")
            );
        }
        let id = listed[0].provider_id.rsplit('/').next().unwrap();
        let said = scene.raw.ec2("DescribeInstanceAttribute", &[("InstanceId", id), ("Attribute", "userData")]).ok();
        let data = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, &said.all("value")[0]).unwrap();
        let data = String::from_utf8(data).unwrap();
        assert!(data.contains("NodeConfig") && data.contains(&scene.cluster), "{data}");
        assert!(
            data.contains("karpenter.sh/nodepool=launch") && data.contains("karpenter.sh/capacity-type=spot"),
            "{data}"
        );
        for claim in &claims {
            cloud.terminate(provider_id(claim).unwrap()).await.unwrap();
        }
        assert_eq!(scene.raw.running().len(), 0);
        let again = cloud.terminate(provider_id(&claims[0]).unwrap()).await.unwrap_err();
        assert_eq!(again.kind, PortErrorKind::NotFound);
        assert!(cloud.instances().await.unwrap().is_empty());
    });
}

/// The answer of each other call is lost, and another process goes on after each.
pub fn lost_answers_launch_nothing_twice(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000004");
        let class = scene.class();
        let mut all: Vec<Vec<NodeClaim>> = ["a", "b"].map(|launch| claims(launch, 4)).into();
        let first = scene.process().await;
        first.describe(&class).await.unwrap();
        for claims in &mut all {
            // More in a row than one pass makes.
            scene.proxy.next("CreateFleet", [Fault::LosesAnswer, Fault::LosesAnswer, Fault::LosesAnswer]);
            let failures = pass(&first, &class, claims, &alternatives(&OFFERINGS), 4).await;
            assert_eq!(failures.len(), 4);
            let failure = &failures[0].error;
            assert_eq!(failure.kind, PortErrorKind::Temporary, "{}", failure.operation);
        }
        assert_eq!(scene.raw.running().len(), 8, "they were launched all the same");
        assert!(pass(&first, &class, &mut all[0], &alternatives(&OFFERINGS), 4).await.is_empty());
        let second = scene.process().await;
        second.describe(&class).await.unwrap();
        assert!(pass(&second, &class, &mut all[1], &alternatives(&OFFERINGS), 4).await.is_empty());
        scene.assert_paired(&all.concat());
    });
}

pub fn what_there_is_none_of_is_passed_over(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000005");
        let (cloud, class) = (scene.process().await, scene.class());
        cloud.describe(&class).await.unwrap();
        scene.proxy.has("m5.large", "us-east-1a", 0);
        scene.proxy.has("m6i.large", "us-east-1b", 2);
        let mut claims = claims("launch", 5);
        let failures = pass(&cloud, &class, &mut claims, &alternatives(&OFFERINGS), 5).await;
        assert!(failures.is_empty(), "{failures:?}");
        scene.assert_paired(&claims);
        let types: Vec<String> = scene.raw.running().into_values().collect();
        let count = |name: &str| types.iter().filter(|it| *it == name).count();
        assert_eq!((count("m5.large"), count("m6i.large"), count("c5.large")), (0, 2, 3));
        let catalog = cloud.catalog().await.unwrap();
        let one = catalog.instance_types.iter().find(|one| one.name == "m5.large").unwrap();
        let gone = one.offerings.iter().find(|it| it.zone == "us-east-1a" && it.capacity_type == "spot").unwrap();
        assert!(!gone.available, "nobody need find out again");
    });
}

pub fn throttled_calls_are_made_again(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000006");
        let (cloud, class) = (scene.process().await, scene.class());
        cloud.describe(&class).await.unwrap();
        scene.proxy.next("CreateFleet", [THROTTLES, THROTTLES]);
        scene.proxy.next("CreateLaunchTemplate", [THROTTLES]);
        let mut claims = claims("launch", 3);
        for _ in 0..5 {
            for failure in pass(&cloud, &class, &mut claims, &alternatives(&OFFERINGS), 3).await {
                assert_eq!(failure.error.kind, PortErrorKind::Temporary, "{}", failure.error.operation);
            }
        }
        scene.assert_paired(&claims);
    });
}

pub fn what_is_denied_is_a_condition(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000007");
        let (cloud, class) = (scene.process().await, scene.class());
        scene.proxy.always("RunInstances", DENIES);
        let facts = cloud.describe(&class).await.unwrap();
        let condition = facts.conditions.iter().find(|it| it.type_ == "ValidationSucceeded").unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (Some(false), "RunInstancesAuthCheckFailed"));
        assert!(condition.message.contains("ec2:RunInstances is denied"), "{}", condition.message);
        scene.proxy.always("CreateFleet", DENIES);
        let failures = pass(&cloud, &class, &mut claims("launch", 1), &alternatives(&OFFERINGS), 1).await;
        let failure = &failures[0].error;
        assert_eq!(failure.kind, PortErrorKind::Permanent);
        assert!(failure.operation.contains("ec2:CreateFleet is denied"), "{}", failure.operation);
        assert_eq!(scene.raw.running().len(), 0);
    });
}

pub fn an_outage_changes_nothing_that_is_known(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000008");
        let (cloud, class) = (scene.process().await, scene.class());
        let before = cloud.describe(&class).await.unwrap();
        for action in ["DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "GetParameters"] {
            scene.proxy.always(action, THROTTLES);
        }
        scene.proxy.always("DescribeInstances", Fault::Waits(Duration::from_millis(50)));
        let after = cloud.describe(&class).await.unwrap();
        assert_eq!((after.zones, after.found), (before.zones, before.found));
        // Another process, which has only what stands in the class.
        let status =
            cutlist::api::ec2_node_class::EC2NodeClassStatus { ..cloud.describe(&class).await.unwrap().found.unwrap() };
        let kept = EC2NodeClass { status: Some(status.clone()), ..class };
        let other = scene.process().await;
        let facts = other.describe(&kept).await.unwrap();
        assert_eq!(facts.found.unwrap().subnets, status.subnets);
        let unknown = facts.conditions.iter().find(|it| it.type_ == "SubnetsReady").unwrap();
        assert_eq!(unknown.status, None, "{unknown:?}");
        assert!(unknown.message.contains("throttled"), "{}", unknown.message);
    });
}

pub fn what_is_announced_is_heard(moto: &Moto) {
    run(async {
        let scene = Scene::new(moto, "100000000009");
        scene.raw.json("sqs", "AmazonSQS.CreateQueue", &json!({ "QueueName": scene.cluster })).ok();
        let cloud = scene.process().await;
        let listens = cloud.ears().listen();
        assert!(cloud.messages().await.unwrap().is_empty());
        let url = format!("http://{}/100000000009/{}", moto.address, scene.cluster);
        for number in 0..25 {
            let body = json!({ "detail-type": "EC2 Spot Instance Interruption Warning", "number": number }).to_string();
            scene.raw.json("sqs", "AmazonSQS.SendMessage", &json!({ "QueueUrl": url, "MessageBody": body })).ok();
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut messages = Vec::new();
        let hears = async {
            while messages.len() < 25 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(100)).await;
                messages.extend(cloud.messages().await.unwrap());
            }
        };
        tokio::select! {
            () = listens => unreachable!("it goes on"),
            () = hears => {}
        }
        assert_eq!(messages.len(), 25);
        for message in &messages {
            assert!(message.body.contains("Spot Instance Interruption"));
            cloud.forget_message(&message.receipt).await.unwrap();
        }
        // What was received and is still there is only hidden for a while: the queue itself says that nothing is left.
        let counts = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let asked = json!({ "QueueUrl": url, "AttributeNames": counts });
        let left = scene.raw.json("sqs", "AmazonSQS.GetQueueAttributes", &asked).ok();
        for count in counts {
            assert!(left.body.contains(&format!("\"{count}\": \"0\"")), "{}", left.body);
        }
    });
}
