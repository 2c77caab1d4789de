//! What EC2 announces is heard beside all other work, by calls that wait.

use std::time::Duration;

use cutlist::adapters::aws::api::account::QueueMessage;
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::ports::Cloud;

use super::account::Account;
use super::scene::{account, run};
use super::{at, identity};

type Process<'a> = AwsCloud<&'a Account, EmbeddedClock>;

fn process<'a>(account: &'a Account, may_write: bool) -> Process<'a> {
    let queue = Some("demo".to_owned());
    let settings = Settings { identity: identity(), queue, may_write, tries_launches: false };
    AwsCloud::new(account, EmbeddedClock::starting_at(at(0)), settings)
}

fn message(number: usize) -> QueueMessage {
    QueueMessage { receipt: format!("r-{number}"), body: String::new(), sent_at: None }
}

/// While somebody listens.
async fn beside<T>(cloud: &Process<'_>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        () = cloud.ears().listen() => unreachable!("it goes on"),
        said = work => said,
    }
}

async fn is_troubled(cloud: &Process<'_>) -> bool {
    cloud.troubles().await.iter().any(|it| it.starts_with("what EC2 announces is not heard"))
}

fn asked(account: &Account) -> usize {
    account.take_calls().iter().filter(|call| call.starts_with("sqs:ReceiveMessage")).count()
}

async fn wait(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[test]
fn an_idle_queue_costs_two_calls_a_minute() {
    run(async {
        let account = account();
        let cloud = process(&account, true);
        beside(&cloud, wait(600)).await;
        let calls = asked(&account);
        assert!((19..=21).contains(&calls), "{calls} in ten minutes");
        // Who only observes ends nothing, whatever is announced.
        beside(&process(&account, false), wait(600)).await;
        assert_eq!(asked(&account), 0);
    });
}

/// A spot instance has two minutes.
#[test]
fn a_notice_is_heard_within_seconds_whenever_it_comes() {
    for moment in [0, 3, 19, 20, 21, 24, 29, 31, 44, 51, 59] {
        run(async {
            let account = account();
            let cloud = process(&account, true);
            let late = async {
                wait(moment).await;
                account.queue.borrow_mut().push_back(Ok(vec![message(1)]));
                wait(12).await;
                cloud.messages().await.unwrap().len()
            };
            assert_eq!(beside(&cloud, late).await, 1, "announced after {moment} s");
        });
    }
}

#[test]
fn many_messages_come_at_once_and_those_before_a_failure_are_acted_on() {
    run(async {
        let account = account();
        let ten = |from: usize| Ok((from..from + 10).map(message).collect::<Vec<_>>());
        account.queue.borrow_mut().extend([ten(0), ten(10), Err("ServiceUnavailable"), ten(20)]);
        let cloud = process(&account, true);
        let work = async {
            wait(1).await;
            assert_eq!(cloud.messages().await.unwrap().len(), 20);
            assert!(is_troubled(&cloud).await);
            wait(16).await;
            assert_eq!(cloud.messages().await.unwrap().len(), 10);
            assert!(!is_troubled(&cloud).await);
        };
        beside(&cloud, work).await;
    });
}

/// The queue keeps what nobody acts on.
#[test]
fn what_nobody_takes_is_not_asked_for_without_end() {
    run(async {
        let account = account();
        let ten = |from: usize| Ok((from..from + 10).map(message).collect::<Vec<_>>());
        account.queue.borrow_mut().extend((0..100).map(|number| ten(number * 10)));
        let cloud = process(&account, true);
        let work = async {
            wait(60).await;
            assert_eq!((asked(&account), cloud.messages().await.unwrap().len()), (10, 100));
            wait(2).await;
            assert_eq!(cloud.messages().await.unwrap().len(), 100, "it goes on");
        };
        beside(&cloud, work).await;
    });
}
