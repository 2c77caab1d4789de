//! Instance profiles that nothing uses any more are deleted, and none that an instance may run with.

use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::ports::Cloud;
use serde_json::json;

use super::account::Account;
use super::claims::{alternatives, claims, pass, provider_id};
use super::scene::{account, class, run};
use super::{at, identity};

type Process<'a> = AwsCloud<&'a Account, EmbeddedClock>;

fn with_role(role: &str) -> EC2NodeClass {
    let mut value = serde_json::to_value(class()).unwrap();
    json_patch::merge(&mut value, &json!({ "spec": { "role": role } }));
    serde_json::from_value(value).unwrap()
}

/// Looks each minute for two hours, and says which roles have profiles then. All were made a second after the instance.
async fn roles_after_two_hours(account: &Account, cloud: &Process<'_>, class: Option<&EC2NodeClass>) -> Vec<String> {
    for _ in 0..120 {
        if let Some(class) = class {
            cloud.describe(class).await.unwrap();
        }
        for profile in account.profiles.borrow_mut().values_mut() {
            profile.created_at.get_or_insert(at(1));
        }
        cloud.instances().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let profiles = account.profiles.borrow();
    let mut roles: Vec<String> = profiles.values().flat_map(|it| it.roles.clone()).collect();
    roles.sort();
    roles
}

#[test]
fn a_profile_goes_when_neither_a_class_nor_an_instance_needs_it() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let settings = Settings { identity: identity(), queue: None, may_write: true, tries_launches: false };
        let cloud = AwsCloud::new(&account, clock.clone(), settings);
        cloud.describe(&with_role("before")).await.unwrap();
        let mut launched = claims("l", 1);
        pass(&cloud, &with_role("before"), &mut launched, &alternatives(&["m5.large a on-demand"]), 1).await;
        // The class has another role; its node still runs with the one before.
        let roles = roles_after_two_hours(&account, &cloud, Some(&with_role("after"))).await;
        assert_eq!(roles, ["after", "before"]);
        let id = provider_id(&launched[0]).unwrap();
        for _ in 0..2 {
            account.fleets.terminate(&[id.rsplit('/').next().unwrap().to_owned()]).unwrap();
        }
        let roles = roles_after_two_hours(&account, &cloud, Some(&with_role("after"))).await;
        assert_eq!(roles, ["after"]);
        // Nobody asks about the class any more.
        assert_eq!(roles_after_two_hours(&account, &cloud, None).await, [""; 0]);
    });
}

#[test]
fn a_profile_of_another_installation_stays() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let settings = Settings { identity: identity(), queue: None, may_write: true, tries_launches: false };
        let cloud = AwsCloud::new(&account, clock.clone(), settings);
        cloud.describe(&class()).await.unwrap();
        for profile in account.profiles.borrow_mut().values_mut() {
            profile.tags.insert("cutlist.dev/installation".to_owned(), "another".to_owned());
        }
        assert_eq!(roles_after_two_hours(&account, &cloud, None).await, ["nodes"]);
    });
}
