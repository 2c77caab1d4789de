//! Instances whose checks fail, or that are to end: asked for once a minute, and told as what a queue brings.

use std::time::Duration;

use cutlist::adapters::aws::api::instances::InstanceStatus;
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::ports::Cloud;

use super::scene::{account, run};
use super::{at, identity};

#[test]
fn what_fails_is_told_each_minute_as_long_as_it_does() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = |may_write| {
            AwsCloud::new(
                &account,
                clock.clone(),
                Settings { identity: identity(), queue: None, may_write, tries_launches: false },
            )
        };
        let status = |id: &str, since: Option<i64>, event: &str| InstanceStatus {
            id: id.to_owned(),
            instance_impaired_since: since.map(at),
            system_impaired_since: None,
            events: Some(event.to_owned()).filter(|event| !event.is_empty()).into_iter().collect(),
        };
        account.statuses.replace(vec![
            status("i-1", Some(-120), ""),
            status("i-2", Some(-30), ""),
            status("i-3", None, "instance-retirement"),
            status("i-4", None, ""),
        ]);
        assert!(cloud(false).failing().await.unwrap().is_empty() && account.take_calls().is_empty());
        let cloud = cloud(true);
        let told = cloud.failing().await.unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].body.contains("\"i-1\"") && told[1].body.contains("\"i-3\""), "{told:?}");
        assert_eq!(account.take_calls(), ["ec2:DescribeInstanceStatus instance-status.status=impaired"]);
        for message in &told {
            cloud.forget_message(&message.receipt).await.unwrap();
        }
        assert!(cloud.failing().await.unwrap().is_empty(), "not before a minute has passed");
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(cloud.failing().await.unwrap().len(), 3);
        assert_eq!(account.take_calls(), ["ec2:DescribeInstanceStatus system-status.status=impaired"]);
        // Who may not ask is told so where everything is that is denied.
        let denied = ("ec2:DescribeInstanceStatus".to_owned(), "UnauthorizedOperation".to_owned());
        account.failures.borrow_mut().extend([denied]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(cloud.failing().await.unwrap().is_empty());
        assert_eq!(cloud.denied().await[0].action, "ec2:DescribeInstanceStatus");
        assert!(cloud.notes().await.iter().all(|note| !note.text.contains("which instances fail")));
    });
}
