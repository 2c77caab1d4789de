//! The generated policy names every action that is called: moto enforces it on a user who has nothing else. What it says of resources and
//! conditions is not judged here, since moto knows neither for most services; each statement is applied to everything.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cutlist::adapters::aws::api::account::NewInstanceProfile;
use cutlist::adapters::aws::api::actions::ACTIONS;
use cutlist::adapters::aws::api::launch::{Config, FleetRequest, LaunchTemplateRequest, Override, RunRequest, Target};
use cutlist::adapters::aws::api::network::ImageQuery;
use cutlist::adapters::aws::api::policy::policy;
use cutlist::adapters::aws::api::template::{LaunchTemplate, MetadataOptions, ReservationUse};
use cutlist::adapters::aws::api::{Action, ApiError, Ec2Api, Tags};
use cutlist::adapters::aws::calls::{Calls, Connection};
use cutlist::adapters::aws::failures::FailureClass;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::moto::{Moto, REGION, Raw};

/// With this word the test program makes calls as the user of its environment, and says what came of each.
pub const AS_USER: &str = "--as-user";

const ACCOUNT: &str = "123456789012";
const USER: &str = "cutlist";

/// Moto has no Price List to refuse, and nobody may be refused to ask who he is.
const NOT_ENFORCED: [Action; 2] = [Action::GetProducts, Action::GetCallerIdentity];

/// Whose signature moto makes another one of: it leaves the body of a GET out, and reads parentheses in a form otherwise. They are refused
/// whatever the policy says.
const NOT_JUDGED: [(Action, &str); 2] =
    [(Action::DescribeSpotPriceHistory, "refused AuthFailure"), (Action::DescribeCluster, "refused AccessDenied")];

/// What the program says of an action that was denied.
const REFUSED: &str = "refused";

/// Those that others are part of.
fn is_called(action: Action) -> bool {
    !matches!(action, Action::PassRole | Action::TagInstanceProfile | Action::DescribeRegions)
}

pub fn the_policy_names_every_action_that_is_called(_: &Moto) {
    let installed = super::installed();
    let moto = Moto::start(&installed, &super::images());
    let raw = moto.account(ACCOUNT);
    raw.form("iam", "CreateUser", &[("UserName", USER)]).ok();
    let key = raw.form("iam", "CreateAccessKey", &[("UserName", USER)]).ok();
    let user =
        User { moto: &moto, raw, key: key.all("AccessKeyId").remove(0), secret: key.all("SecretAccessKey").remove(0) };
    let called: Vec<Action> = ACTIONS.iter().copied().filter(|action| is_called(*action)).collect();

    // Without it nothing is allowed, so what is allowed below is allowed by the policy.
    let another = json!({ "Sid": "Another", "Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": "*" });
    let nothing = user.tries(&json!({ "Version": "2012-10-17", "Statement": [another] }), &called);
    let not_refused: BTreeSet<Action> =
        called.iter().copied().filter(|action| !nothing[action.name()].starts_with(REFUSED)).collect();
    assert_eq!(not_refused, NOT_ENFORCED.into(), "moto enforces other actions than is known: {nothing:#?}");

    let refused = |tried: &BTreeMap<String, String>| -> Vec<String> {
        let refused = tried.iter().filter(|(_, said)| said.starts_with(REFUSED));
        refused.map(|(action, said)| format!("{action} {said}")).collect()
    };
    let whole = of_everything(policy());
    let expected: BTreeSet<String> = NOT_JUDGED.map(|(action, said)| format!("{action} {said}")).into();
    let found: BTreeSet<String> = refused(&user.tries(&whole, &called)).into_iter().collect();
    assert_eq!(found, expected, "called, and not in the policy");

    // A policy that lacks one of them is noticed, whichever it is.
    let is_judged =
        |action: &Action| !NOT_ENFORCED.contains(action) && NOT_JUDGED.iter().all(|(other, _)| other != action);
    for action in called.iter().copied().filter(is_judged) {
        let tried = user.tries(&without(&whole, action), &[action]);
        assert!(tried[action.name()].starts_with(REFUSED), "{action} is not missed: {tried:?}");
    }
}

struct User<'m> {
    moto: &'m Moto,
    raw: Raw<'m>,
    key: String,
    secret: String,
}

impl User<'_> {
    /// What each action came to under a policy. A process of its own makes the calls: the SDK reads credentials from its environment.
    fn tries(&self, policy: &Value, actions: &[Action]) -> BTreeMap<String, String> {
        self.enforce(false);
        let document = policy.to_string();
        let fields = [("UserName", USER), ("PolicyName", "policy"), ("PolicyDocument", document.as_str())];
        self.raw.form("iam", "PutUserPolicy", &fields).ok();
        self.enforce(true);
        let output = Command::new(std::env::current_exe().unwrap())
            .args([AS_USER, &format!("http://{}", self.moto.address)])
            .args(actions.iter().map(|action| action.name()))
            .envs([("AWS_ACCESS_KEY_ID", &self.key), ("AWS_SECRET_ACCESS_KEY", &self.secret)])
            .envs([("AWS_REGION", REGION), ("AWS_EC2_METADATA_DISABLED", "true")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let tried: BTreeMap<String, String> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(action, said)| (action.to_owned(), said.to_owned()))
            .collect();
        assert_eq!(tried.len(), actions.len(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        tried
    }

    /// After so many calls from now on moto looks at policies.
    fn enforce(&self, enforces: bool) {
        let calls = if enforces { "0" } else { "1000000" };
        self.raw.send("POST", "/moto-api/reset-auth", "moto", &[("content-type", "text/plain")], calls).ok();
    }
}

/// Each statement applied to everything, under no condition.
fn of_everything(mut policy: Value) -> Value {
    for statement in policy["Statement"].as_array_mut().unwrap() {
        statement["Resource"] = json!("*");
        statement.as_object_mut().unwrap().remove("Condition");
    }
    policy
}

fn without(policy: &Value, action: Action) -> Value {
    let mut policy = policy.clone();
    for statement in policy["Statement"].as_array_mut().unwrap() {
        statement["Action"].as_array_mut().unwrap().retain(|name| *name != action.name());
    }
    // A statement must allow something.
    policy["Statement"].as_array_mut().unwrap().retain(|it| !it["Action"].as_array().unwrap().is_empty());
    policy
}

/// Makes the calls of these actions, and prints a line for each.
pub fn make_calls(url: &str, names: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = Connection {
            region: Some(REGION.to_owned()),
            endpoint_url: Some(url.to_owned()),
            single_attempt: true,
            ..Connection::default()
        };
        let calls = Calls::connect(&place).await;
        for name in names {
            let action = *ACTIONS.iter().find(|action| action.name() == name).unwrap();
            match call(&calls, action).await {
                Err(error) if error.class == FailureClass::Denied => println!("{name} {REFUSED} {}", error.code),
                Err(error) => println!("{name} failed {} {}", error.code, error.message.replace('\n', " ")),
                Ok(()) => println!("{name} done"),
            }
        }
    });
}

/// A call of the action, on things that are not there.
async fn call(api: &Calls, action: Action) -> Result<(), ApiError> {
    let id = || ["i-0123456789abcdef0".to_owned()];
    let (profile, queue) = ("nobody", format!("http://sqs.{REGION}.amazonaws.com/{ACCOUNT}/nobody"));
    match action {
        Action::DescribeAvailabilityZones => api.describe_availability_zones().await.map(drop),
        Action::DescribeCapacityReservations => api.describe_capacity_reservations(&[], None).await.map(drop),
        Action::DescribeImages => api.describe_images(&ImageQuery::default(), None).await.map(drop),
        Action::DescribeInstances => api.describe_instances(&[], None).await.map(drop),
        Action::DescribeInstanceStatus => api.describe_instance_status(&[], None).await.map(drop),
        Action::DescribeInstanceTypeOfferings => api.describe_instance_type_offerings(None).await.map(drop),
        Action::DescribeInstanceTypes => api.describe_instance_types(None).await.map(drop),
        Action::DescribeLaunchTemplates => api.describe_launch_templates(&[], None).await.map(drop),
        Action::DescribePlacementGroups => api.describe_placement_groups(&[]).await.map(drop),
        Action::DescribeSecurityGroups => api.describe_security_groups(&[], None).await.map(drop),
        Action::DescribeSpotPriceHistory => {
            api.describe_spot_price_history(Timestamp::UNIX_EPOCH, None).await.map(drop)
        }
        Action::DescribeSubnets => api.describe_subnets(&[], None).await.map(drop),
        Action::DescribeRegions => api.describe_regions().await.map(drop),
        Action::GetProducts => api.get_products(&[], None).await.map(drop),
        Action::GetServiceQuota => api.get_service_quota("L-1216C47A").await.map(drop),
        Action::GetParameters => api.get_parameters(&["/nothing".to_owned()]).await.map(drop),
        Action::DescribeCluster => api.describe_cluster("nobody").await.map(drop),
        Action::GetCallerIdentity => api.get_caller_identity().await.map(drop),
        Action::DecodeAuthorizationMessage => api.decode_authorization_message("nothing").await.map(drop),
        Action::CreateFleet => api.create_fleet(&fleet(), false).await.map(drop),
        Action::RunInstances => api.run_instances_dry_run(&run()).await,
        Action::CreateLaunchTemplate => api.create_launch_template(&template(), true).await,
        Action::CreateTags => api.create_tags(&id(), &Tags::from([("Name".to_owned(), "a".to_owned())])).await,
        Action::DeleteLaunchTemplate => api.delete_launch_template("cutlist.dev/nothing").await,
        Action::TerminateInstances => api.terminate_instances(&id()).await.map(drop),
        Action::GetQueueUrl => api.get_queue_url("nobody").await.map(drop),
        Action::ReceiveMessage => api.receive_messages(&queue, 0).await.map(drop),
        Action::DeleteMessage => api.delete_message(&queue, "nothing").await,
        Action::GetInstanceProfile => api.get_instance_profile(profile).await.map(drop),
        Action::ListInstanceProfiles => api.list_instance_profiles("/", None).await.map(drop),
        Action::CreateInstanceProfile => {
            let wanted = NewInstanceProfile { name: profile.to_owned(), path: "/".to_owned(), tags: Tags::new() };
            api.create_instance_profile(&wanted).await.map(drop)
        }
        Action::AddRoleToInstanceProfile => api.add_role_to_instance_profile("nothing", "nobody").await,
        Action::RemoveRoleFromInstanceProfile => api.remove_role_from_instance_profile("nothing", "nobody").await,
        Action::DeleteInstanceProfile => api.delete_instance_profile("nothing").await,
        Action::PassRole | Action::TagInstanceProfile => panic!("{action} is never called"),
    }
}

fn fleet() -> FleetRequest {
    let one = Override {
        instance_type: "m5.large".to_owned(),
        zone: format!("{REGION}a"),
        subnet_id: "subnet-0123456789abcdef0".to_owned(),
        image_id: "ami-0a0a0a0a0a0a0a0a0".to_owned(),
        priority: 0,
    };
    FleetRequest {
        client_token: "permissions".to_owned(),
        capacity_type: "on-demand".to_owned(),
        target: Target::OnDemand,
        count: 1,
        strategy: None,
        configs: vec![Config { template: "cutlist.dev/nothing".to_owned(), overrides: vec![one] }],
        tags: BTreeMap::new(),
        context: None,
    }
}

fn run() -> RunRequest {
    RunRequest {
        launch_template: "cutlist.dev/nothing".to_owned(),
        instance_type: "m5.large".to_owned(),
        image_id: "ami-0a0a0a0a0a0a0a0a0".to_owned(),
        subnet_id: "subnet-0123456789abcdef0".to_owned(),
        tags: Tags::new(),
    }
}

fn template() -> LaunchTemplateRequest {
    let template = LaunchTemplate {
        image_id: "ami-0a0a0a0a0a0a0a0a0".to_owned(),
        user_data: String::new(),
        instance_profile: "nobody".to_owned(),
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
        tags: BTreeMap::new(),
        tags_spot_requests: false,
    };
    LaunchTemplateRequest { name: "cutlist.dev/nothing".to_owned(), client_token: "permissions".to_owned(), template }
}
