//! EC2 whose calls nobody waits for: the same comes of them.

use std::rc::Rc;

use cutlist::adapters::aws::beside::Beside;
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::core::catalog::Catalog;
use cutlist::ports::{Cloud, PortErrorKind};

use super::claims::{alternatives, claims, pass, provider_id};
use super::scene::{account, class, run};
use super::{at, identity};

#[test]
fn what_is_asked_beside_the_controller_is_asked_as_often() {
    run(async {
        let (account, clock) = (Rc::new(account()), EmbeddedClock::starting_at(at(0)));
        let settings = Settings { identity: identity(), queue: None, may_write: true, tries_launches: false };
        let cloud = AwsCloud::new(account.clone(), clock, settings);
        let assumed = Catalog::built_in("us-east-1").unwrap();
        let (cloud, calls) = Beside::start(cloud, assumed.into(), || true);
        let asked = async {
            assert_eq!(
                cloud.catalog().await.unwrap().instance_types.len(),
                3,
                "what EC2 sells, and not what is assumed"
            );
            let facts = cloud.describe(&class()).await.unwrap();
            assert_eq!(facts.zones, ["us-east-1a", "us-east-1b"]);
            let mut claims = claims("l", 20);
            let offerings = alternatives(&["m5.large a spot", "m6i.large a spot", "m5.large b on-demand"]);
            assert!(pass(&cloud, &class(), &mut claims, &offerings, 20).await.is_empty());
            assert_eq!((account.fleets.fleets(), cloud.instances().await.unwrap().len()), (1, 20));
            cloud.terminate(provider_id(&claims[0]).unwrap()).await.unwrap();
            assert_eq!(account.fleets.running().len(), 19);
            let unknown = cloud.terminate("aws:///us-east-1a/i-0").await.unwrap_err();
            assert_eq!(unknown.kind, PortErrorKind::NotFound);
            assert!(!cloud.is_asking() && cloud.notes().await.is_empty());
        };
        tokio::select! {
            () = asked => {}
            () = calls => unreachable!("it has no end"),
        }
    });
}
