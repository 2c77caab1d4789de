//! What launches cost with the SDK over HTTP: calls as the proxy counts them, and seconds as they pass. Calls have bounds; seconds are only
//! reported, since moto is slow, and so is a machine on which others work.

use std::path::Path;
use std::time::Duration;

use cutlist::api::node_claim::NodeClaim;
use cutlist::ports::Cloud;
use futures::future::join_all;

use super::cases::{run, scene};
use super::claims::{alternatives, claims, pass};
use super::machine;
use super::moto::Moto;
use super::proxy::{Call, Fault};

const COMMAND: &str = "make bench-ec2-sdk";
const ON_DEMAND: [&str; 2] = ["m5.large a on-demand", "m5.large b on-demand"];

struct Figure {
    scenario: &'static str,
    target: &'static str,
    found: String,
}

pub fn keep_their_bounds(moto: &Moto) {
    for Figure { scenario, found, .. } in all(moto) {
        println!("       {scenario}: {found}");
    }
}

/// Into the marked block of a document.
pub fn write(moto: &Moto, readme: &Path) {
    let mut text = machine::preamble(COMMAND) + "| scenario | target | found |\n|---|---|---|\n";
    for Figure { scenario, target, found } in all(moto) {
        text.push_str(&format!("| {scenario} | {target} | {found} |\n"));
    }
    print!("{text}");
    machine::replace_block(readme, COMMAND, &text);
}

fn all(moto: &Moto) -> [Figure; 2] {
    [thousand_claims(moto), cold_templates(moto)]
}

fn thousand_claims(moto: &Moto) -> Figure {
    run(async {
        let scene = scene(moto, "100000000013");
        let (cloud, class) = (scene.process().await, scene.class());
        cloud.describe(&class).await.unwrap();
        scene.proxy.take("CreateFleet");
        let mut launches: Vec<Vec<NodeClaim>> = ["a", "b", "c", "d"].map(|launch| claims(launch, 250)).into();
        let offerings = alternatives(&ON_DEMAND);
        let began = std::time::Instant::now();
        let passes = launches.iter_mut().map(|claims| pass(&cloud, &class, claims, &offerings, 250));
        let failures: Vec<_> = join_all(passes).await.into_iter().flatten().collect();
        assert!(failures.is_empty(), "{failures:?}");
        let took = began.elapsed();
        let calls = scene.proxy.take("CreateFleet");
        let last = calls.iter().map(|call| call.at).max().unwrap().duration_since(began);
        assert!(calls.len() <= 8, "{} calls", calls.len());
        scene.assert_paired(&launches.concat());
        let found = format!(
            "{} calls, 0 duplicates, the last {:.2} s after the plan; moto answers after {:.0} s",
            calls.len(),
            last.as_secs_f64(),
            took.as_secs_f64()
        );
        let target = "<= 8 CreateFleet calls, 0 duplicates, last call <= 1 s after the plan";
        Figure { scenario: "1,000 claims of 4 pools at once", target, found }
    })
}

fn cold_templates(moto: &Moto) -> Figure {
    const DELAY: Duration = Duration::from_millis(100);
    run(async {
        let scene = scene(moto, "100000000014");
        let (cloud, class) = (scene.process().await, scene.class());
        cloud.describe(&class).await.unwrap();
        scene.proxy.take("CreateLaunchTemplate");
        scene.proxy.always("CreateLaunchTemplate", Fault::Waits(DELAY));
        let mut launches: Vec<Vec<NodeClaim>> = (0..20).map(|number| claims(&format!("pool-{number}"), 1)).collect();
        let offerings = alternatives(&ON_DEMAND);
        let passes = launches.iter_mut().map(|claims| pass(&cloud, &class, claims, &offerings, 1));
        join_all(passes).await;
        let calls: Vec<Call> = scene.proxy.take("CreateLaunchTemplate");
        assert_eq!(calls.len(), 20, "each is made once");
        let (first, last) = (calls.iter().map(|it| it.at).min(), calls.iter().map(|it| it.at).max());
        let took = last.unwrap().duration_since(first.unwrap()) + DELAY;
        let found = format!("{} calls within {:.2} s, beside moto's own time", calls.len(), took.as_secs_f64());
        Figure { scenario: "20 cold templates at 100 ms a call", target: "<= 0.6 s", found }
    })
}
