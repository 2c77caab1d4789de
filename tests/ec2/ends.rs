//! Instances that EC2 ends before their nodes join, under the whole controller: why is said, and calls of CreateFleet come to an end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use cutlist::adapters::embedded::{EmbeddedWorld, WorldSettings};
use cutlist::controller::events::Event;
use cutlist::controller::{Journal, Mode};
use cutlist::core::catalog::Catalog;
use cutlist::core::plan::EndCause;
use serde_json::json;

use super::account::Account;
use super::controller::{apart, controller, definitions};
use super::scene::{account, at, run};

/// What the controller says within so many minutes, on an account whose instances all end at once.
async fn events(account: &Account, minutes: u64) -> Vec<Event> {
    let world = EmbeddedWorld::new(WorldSettings::new(0, at(0)), Catalog::built_in("us-east-1").unwrap());
    world.with(|world| world.load(apart(4)));
    let said: Rc<RefCell<Vec<Event>>> = Rc::default();
    let heard = said.clone();
    let journal = Journal::new(move |_, event| heard.borrow_mut().push(event.clone()));
    let limits = Some(json!({ "cpu": "100" }));
    let mut controller = controller(account, &world, definitions(limits), Mode::Enforce, journal);
    let _ends = tokio::time::timeout(Duration::from_secs(minutes * 60), controller.run()).await;
    said.take()
}

#[test]
fn a_key_that_may_not_be_used_stops_the_pool_and_is_named() {
    run(async {
        let account = account();
        account.fleets.ends.set(Some(("Client.InvalidKMSKey.InvalidState", "The key arn:aws:kms:k is disabled")));
        let events = Box::pin(events(&account, 30)).await;
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
