//! What the account does not allow: said in plans with a code of its own, as long as it is so.

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::cloud_facts::DeniedPermission;
use cutlist::ports::{Cloud, LaunchRequest, LaunchRules};

use super::account::Account;
use super::claims::{alternatives, claims};
use super::scene::{account, class, run};
use super::{at, identity};

fn cloud<'a>(account: &'a Account, clock: &EmbeddedClock) -> AwsCloud<&'a Account, EmbeddedClock> {
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue: None, may_write: true, tries_launches: false },
    )
}

fn deny(account: &Account, action: &str, code: &str) {
    account.failures.borrow_mut().insert(action.to_owned(), code.to_owned());
}

#[test]
fn what_is_denied_is_said_until_it_is_allowed() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock);
        deny(&account, "ec2:DescribeSecurityGroups", "UnauthorizedOperation");
        deny(&account, "servicequotas:GetServiceQuota", "AccessDeniedException");
        deny(&account, "ec2:DescribeSubnets", "RequestLimitExceeded");
        cloud.describe(&class()).await.unwrap();
        cloud.vcpu_quotas().await;
        let groups = DeniedPermission {
            action: "ec2:DescribeSecurityGroups".to_owned(),
            text: "ec2:DescribeSecurityGroups is denied: as the test says".to_owned(),
            needed_for: "security groups that classes select".to_owned(),
        };
        let denied = cloud.denied().await;
        let actions: Vec<&str> = denied.iter().map(|it| it.action.as_str()).collect();
        assert_eq!(actions, ["ec2:DescribeSecurityGroups", "servicequotas:GetServiceQuota"]);
        assert_eq!(denied[0], groups);
        // It stands in one place of a plan, and what is throttled in another.
        let notes: Vec<String> = cloud.notes().await.into_iter().map(|note| note.text).collect();
        assert!(!notes.iter().any(|note| note.starts_with("ec2:DescribeSecurityGroups")), "{notes:?}");
        assert!(notes.iter().any(|note| note.contains("ec2:DescribeSubnets is throttled")), "{notes:?}");
        account.failures.borrow_mut().remove("ec2:DescribeSecurityGroups");
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        cloud.describe(&class()).await.unwrap();
        let actions: Vec<String> = cloud.denied().await.into_iter().map(|it| it.action).collect();
        assert_eq!(actions, ["servicequotas:GetServiceQuota"]);
    });
}

/// The images that were reviewed are launched, and not those of the class.
#[test]
fn a_launch_has_the_images_that_it_was_given() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let image = serde_json::json!({ "id": "ami-reviewed",
            "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }] });
        let reviewed = [serde_json::from_value(image).unwrap()];
        let (claims, offerings, class) = (claims("l", 2), alternatives(&["m5.large a on-demand"]), class());
        let request = LaunchRequest {
            launch_id: "l",
            installation: "one",
            claims: claims.iter().collect(),
            assigned: Vec::new(),
            class: Some(&class),
            images: Some(&reviewed),
            alternatives: &offerings,
            rules: LaunchRules::default(),
        };
        let launched = cloud.launch(&request).await;
        assert!(launched.iter().all(|it| it.as_ref().is_ok_and(|instance| instance.image_id == "ami-reviewed")));
        let running: Vec<String> = account.fleets.running().into_iter().map(|it| it.image_id).collect();
        assert_eq!(running, ["ami-reviewed", "ami-reviewed"]);
        // None that fits is no reason to take another one.
        let arm = serde_json::json!({ "id": "ami-arm",
            "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"] }] });
        let reviewed = [serde_json::from_value(arm).unwrap()];
        let further = super::claims::claims("m", 1);
        let request =
            LaunchRequest { launch_id: "m", claims: further.iter().collect(), images: Some(&reviewed), ..request };
        let failed = cloud.launch(&request).await.remove(0).unwrap_err();
        assert!(
            failed.error.operation.ends_with("m5.large runs none of the images of the class"),
            "{}",
            failed.error.operation
        );
        assert_eq!(account.fleets.running().len(), 2);
    });
}
