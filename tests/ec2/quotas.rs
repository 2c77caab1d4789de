//! The account's quotas for instances, as the port gives them.

use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::cloud_facts::VcpuQuotaUse;
use cutlist::ports::Cloud;

use super::account::Account;
use super::claims::{alternatives, claims, pass, provider_id};
use super::scene::{account, class, run};
use super::{at, identity};

const STANDARD: &str = "L-1216C47A";
const SPOT_STANDARD: &str = "L-34B43A08";

/// An account that may have ten processors of standard families on demand and four on spot.
fn small() -> Account {
    let account = account();
    let quotas = [(STANDARD, 10.0), (SPOT_STANDARD, 4.0)];
    account.things.borrow_mut().quotas = quotas.map(|(code, value)| (code.to_owned(), value)).into();
    account
}

fn cloud<'a>(account: &'a Account, clock: &EmbeddedClock) -> AwsCloud<&'a Account, EmbeddedClock> {
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue: None, may_write: true, tries_launches: false },
    )
}

fn quota(code: &str, vcpus: u64, used: Option<u64>) -> VcpuQuotaUse {
    VcpuQuotaUse { code: code.to_owned(), vcpus, used }
}

#[test]
fn what_runs_counts_by_its_type_and_how_it_was_bought() {
    run(async {
        let (account, clock) = (small(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let none = [quota(STANDARD, 10, Some(0)), quota(SPOT_STANDARD, 4, Some(0))];
        assert_eq!(cloud.vcpu_quotas().await, none);
        let mut launched = claims("l", 3);
        assert!(pass(&cloud, &class(), &mut launched, &alternatives(&["m5.large a on-demand"]), 3).await.is_empty());
        let three = [quota(STANDARD, 10, Some(6)), quota(SPOT_STANDARD, 4, Some(0))];
        assert_eq!(cloud.vcpu_quotas().await, three, "they count at once, though EC2 was asked a moment ago");
        launched.iter_mut().for_each(|claim| claim.status = None);
        assert!(pass(&cloud, &class(), &mut launched, &alternatives(&["m5.large a on-demand"]), 3).await.is_empty());
        assert_eq!(cloud.vcpu_quotas().await, three, "the same instances, given again");
        account.take_calls();
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(cloud.vcpu_quotas().await, three);
        }
        let calls = account.take_calls();
        let of = |action: &str| calls.iter().filter(|call| call.starts_with(action)).count();
        assert_eq!((of("servicequotas:GetServiceQuota"), of("ec2:DescribeInstances")), (0, 12), "an hour of looks");
        let mut further = claims("m", 1);
        pass(&cloud, &class(), &mut further, &alternatives(&["m5.large a on-demand"]), 1).await;
        assert_eq!(cloud.vcpu_quotas().await[0], quota(STANDARD, 10, Some(8)));
        cloud.terminate(provider_id(&further[0]).unwrap()).await.unwrap();
        assert_eq!(cloud.vcpu_quotas().await, three, "one that ends before it was counted");
    });
}

#[test]
fn who_may_not_ask_for_quotas_plans_without_them_and_is_told() {
    run(async {
        let (account, clock) = (small(), EmbeddedClock::starting_at(at(0)));
        account
            .failures
            .borrow_mut()
            .insert("servicequotas:GetServiceQuota".to_owned(), "AccessDeniedException".to_owned());
        let cloud = cloud(&account, &clock);
        assert_eq!(cloud.vcpu_quotas().await, []);
        let said = cloud.troubles().await;
        let expected = "the account's quotas for instances are not known: servicequotas:GetServiceQuota";
        assert!(said.iter().any(|it| it.starts_with(expected)), "{said:?}");
    });
}

#[test]
fn an_answer_that_does_not_come_leaves_what_was_known() {
    run(async {
        let (account, clock) = (small(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock);
        let known = cloud.vcpu_quotas().await;
        account.failures.borrow_mut().insert("ec2:DescribeInstances".to_owned(), "RequestLimitExceeded".to_owned());
        tokio::time::sleep(Duration::from_secs(360)).await;
        assert_eq!(cloud.vcpu_quotas().await, known);
        let said = cloud.troubles().await;
        assert!(said.iter().any(|it| it.starts_with("what runs under the account's quotas is not known")), "{said:?}");
    });
}
