//! How far the judge gets with places: what a plan shows comes first, and what is left is counted.

use serde_json::json;

use crate::check::judge::LOOKS_MAX;
use crate::check::placements::{LooksMax, Untried};
use crate::check::plan::{Judgement, check_within};
use crate::testing::{BuildNode, BuildPod, Merge, node, pod};
use cutlist_api::keys;

use super::{Case, Code, launch, valid};

fn within(case: &Case, looks_max: LooksMax) -> Judgement {
    check_within(&case.plan, &case.inputs(), looks_max)
}

fn looks(of_any_plan: u64) -> LooksMax {
    LooksMax { of_any_plan, of_each_pod: 0, of_each_pod_that_gets_a_place: 0 }
}

/// Two pods that spread go to a new node, in a cluster where many others count for them.
fn spread(others: usize, alternatives: usize) -> Case {
    let mut case = valid();
    let constraint = json!({ "maxSkew": 100, "topologyKey": keys::HOSTNAME, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "job" } } });
    for name in ["job-0", "job-1"] {
        case.edit_pod(name, |pod| {
            pod.label("app", "job").merge(json!({ "spec": { "topologySpreadConstraints": [constraint] } }))
        });
    }
    case.snapshot.nodes.push(node("elsewhere").allocatable("4", "16Gi", "10000"));
    let more = (0..others).map(|number| pod(&format!("more-{number}")).label("app", "more").on("elsewhere"));
    case.snapshot.pods = case.snapshot.pods.iter().cloned().chain(more).collect::<Vec<_>>().into();
    let offered = vec![("m.xlarge", 0.2); alternatives];
    case.edit_step("new-1", json!({ "launch": launch("new-1", &offered) }));
    case
}

fn is_refused(found: &Judgement) -> bool {
    found.violations.iter().any(|violation| violation.code == Code::Refused)
}

#[test]
fn what_an_ordinary_cluster_needs_is_judged_whole() {
    // When each pod looked at all others for each alternative, that was given up from 500 pods on.
    let found = within(&spread(4_000, 100), LOOKS_MAX);
    assert_eq!(found.untried, Untried::default());
    assert!(!is_refused(&found), "{found:?}");
}

#[test]
fn what_is_shown_comes_first_and_what_is_left_is_counted() {
    let case = spread(10, 100);
    let of = |max: u64| within(&case, looks(max)).untried;
    let none = of(0);
    assert!(none.places > 2 && none.alternatives >= 99 && none.pending == 1, "{none:?}");
    let some = of(200);
    assert_eq!((some.places, some.pending), (0, 1), "{some:?}");
    assert!(some.alternatives > 0 && some.alternatives < none.alternatives, "{some:?}");
    assert_eq!(of(100_000), Untried::default());
}

#[test]
fn a_wrong_place_is_found_though_no_look_is_left_for_alternatives() {
    let mut case = spread(10, 100);
    assert!(!is_refused(&within(&case, looks(200))));
    case.edit_pod("job-0", |pod| pod.merge(json!({ "spec": { "nodeSelector": { "team": "red" } } })));
    assert!(is_refused(&within(&case, looks(200))));
}

/// What needs no look at others is judged in any case.
#[test]
fn a_place_that_is_not_there_is_found_without_a_look() {
    let mut case = valid();
    case.plan.placements[0].node = "node-big".to_owned();
    let found = within(&case, looks(0));
    assert!(found.untried.places > 0, "{found:?}");
    assert!(found.violations.iter().any(|violation| violation.code == Code::UnknownNode), "{found:?}");
}
