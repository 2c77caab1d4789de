//! Dry runs: what each failure says of a class, and what says nothing.

use cutlist::adapters::aws::api::launch::{FleetRequest, LaunchTemplateRequest, RunRequest, Target};
use cutlist::adapters::aws::api::template::{LaunchTemplate, MetadataOptions, ReservationUse};
use cutlist::adapters::aws::resolution::Resolver;
use cutlist::adapters::aws::resolution::validation::{DryRuns, Reason, Validator, Verdict};
use cutlist::api::ec2_node_class::EC2NodeClass;
use serde_json::json;

use super::account::{Account, Things};
use super::{at, block_on, identity};

fn class() -> EC2NodeClass {
    let value = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": "default", "generation": 1 }, "spec": { "instanceProfile": "nodes",
        "amiSelectorTerms": [{ "alias": "bottlerocket@latest" }], "subnetSelectorTerms": [], "securityGroupSelectorTerms": [] } });
    serde_json::from_value(value).unwrap()
}

fn template() -> LaunchTemplate {
    LaunchTemplate {
        image_id: "ami-1".to_owned(),
        user_data: String::new(),
        instance_profile: "nodes".to_owned(),
        block_devices: Vec::new(),
        metadata: MetadataOptions {
            http_endpoint: "enabled".to_owned(),
            http_protocol_ipv6: None,
            http_put_response_hop_limit: 1,
            http_tokens: "required".to_owned(),
        },
        interfaces: Vec::new(),
        detailed_monitoring: false,
        nested_virtualization: None,
        enclave: false,
        tenancy: "default".to_owned(),
        placement_group: None,
        reservation: ReservationUse::Open,
        tags: Default::default(),
        tags_spot_requests: false,
    }
}

fn runs() -> DryRuns {
    let run = |subnet: &str| RunRequest {
        launch_template: "template".to_owned(),
        instance_type: "m5.large".to_owned(),
        image_id: "ami-1".to_owned(),
        subnet_id: subnet.to_owned(),
        tags: Default::default(),
    };
    DryRuns {
        template: LaunchTemplateRequest {
            name: "template".to_owned(),
            client_token: "template".to_owned(),
            template: template(),
        },
        fleet: FleetRequest {
            client_token: "fleet".to_owned(),
            capacity_type: "on-demand".to_owned(),
            target: Target::OnDemand,
            count: 1,
            strategy: None,
            configs: Vec::new(),
            context: None,
            tags: Default::default(),
        },
        runs: vec![run("subnet-a"), run("subnet-b")],
    }
}

struct Scene {
    account: Account,
    resolver: Resolver,
    validator: Validator,
}

impl Scene {
    fn new() -> Self {
        Self {
            account: Account::new(Things::default()),
            resolver: Resolver::new(identity()),
            validator: Validator::default(),
        }
    }

    fn fail(&self, what: &str, code: &str) {
        self.account.failures.borrow_mut().insert(what.to_owned(), code.to_owned());
    }

    fn verdict(&mut self, runs: &DryRuns, second: i64) -> Verdict {
        let facts = self.resolver.facts(&class(), at(second));
        block_on(self.validator.validate(&self.account, &class(), &facts, Some(runs), at(second)))
    }

    fn reason(&mut self, second: i64) -> Option<Reason> {
        match self.verdict(&runs(), second) {
            Verdict::Failed { reason, .. } => Some(reason),
            Verdict::Passed | Verdict::Unknown { .. } => None,
        }
    }
}

#[test]
fn what_is_denied_is_said_by_step() {
    for (action, reason) in [
        ("ec2:CreateLaunchTemplate", Reason::CreateLaunchTemplateAuthCheckFailed),
        ("ec2:CreateFleet", Reason::CreateFleetAuthCheckFailed),
        ("ec2:RunInstances", Reason::RunInstancesAuthCheckFailed),
    ] {
        let mut scene = Scene::new();
        scene.fail(action, "UnauthorizedOperation");
        assert_eq!(scene.reason(0), Some(reason), "{action}");
        // It is remembered for ten minutes, and then asked again.
        scene.account.failures.borrow_mut().clear();
        assert_eq!(scene.reason(599), Some(reason), "{action}");
        assert_eq!(scene.verdict(&runs(), 600), Verdict::Passed, "{action}");
    }
}

#[test]
fn one_subnet_that_is_allowed_is_enough() {
    let mut scene = Scene::new();
    scene.fail("ec2:RunInstances subnet-a", "UnauthorizedOperation");
    assert_eq!(scene.verdict(&runs(), 0), Verdict::Passed);
    assert_eq!(scene.account.take_calls().last().unwrap(), "ec2:RunInstances subnet-b");
}

#[test]
fn a_throttled_dry_run_says_nothing() {
    let mut scene = Scene::new();
    scene.fail("ec2:CreateFleet", "RequestLimitExceeded");
    assert!(matches!(scene.verdict(&runs(), 0), Verdict::Unknown { .. }));
    scene.account.failures.borrow_mut().clear();
    assert_eq!(scene.verdict(&runs(), 15), Verdict::Passed);
    // And takes nothing back: half an hour later the next try is throttled.
    scene.fail("ec2:CreateFleet", "RequestLimitExceeded");
    assert_eq!(scene.verdict(&runs(), 15 + 1_800), Verdict::Passed);
}

#[test]
fn a_dry_run_is_made_once_for_what_stays_the_same() {
    let mut scene = Scene::new();
    scene.verdict(&runs(), 0);
    assert_eq!(scene.account.take_calls().len(), 4, "the template twice, a fleet, one subnet");
    scene.verdict(&runs(), 1_799);
    assert_eq!(scene.account.take_calls(), Vec::<String>::new());
    let mut changed = runs();
    changed.runs.truncate(1);
    assert_eq!(scene.verdict(&changed, 1_799), Verdict::Passed);
    assert_eq!(scene.account.take_calls().len(), 4, "the template is there already, which is fine");
}

/// What was made a moment ago is not known everywhere: it is tried again soon, and not ten minutes later.
#[test]
fn a_new_instance_profile_is_tried_again_soon() {
    let mut scene = Scene::new();
    scene.fail("ec2:CreateFleet", "InvalidParameterValue Invalid IAM Instance Profile name");
    assert_eq!(scene.reason(0), Some(Reason::InstanceProfileNotFound));
    scene.account.failures.borrow_mut().clear();
    assert_eq!(scene.reason(14), Some(Reason::InstanceProfileNotFound));
    assert_eq!(scene.verdict(&runs(), 15), Verdict::Passed);
}

/// Credentials that have expired say nothing of a class.
#[test]
fn credentials_are_nothing_of_the_class() {
    let mut scene = Scene::new();
    scene.fail("ec2:CreateFleet", "ExpiredToken");
    assert!(matches!(scene.verdict(&runs(), 0), Verdict::Unknown { .. }));
    scene.account.failures.borrow_mut().clear();
    assert_eq!(scene.verdict(&runs(), 15), Verdict::Passed);
    scene.fail("ec2:CreateFleet", "RequestExpired");
    assert_eq!(scene.verdict(&runs(), 15 + 1_800), Verdict::Passed, "and take nothing back");
}
