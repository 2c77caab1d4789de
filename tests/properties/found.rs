//! What random worlds found, written by hand.

use cutlist::api::keys::ZONE;
use cutlist::api::settings::Packing;
use cutlist::core::plan::check::check;
use cutlist::core::plan::decide;
use serde_json::json;

use crate::bad_input::{cluster, pod};

#[test]
fn a_spread_counts_the_zones_of_all_terms_of_node_affinity() {
    let term = |zone: &str| json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
    let spec = json!({
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term("zone-b"), term("zone-a")]
        } } },
        "topologySpreadConstraints": [{
            "topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        }],
    });
    let pods = (0..4).map(|number| {
        let mut web = pod(&format!("web-{number}"), json!({ "cpu": "100m" }), spec.clone());
        web["metadata"]["labels"] = json!({ "app": "web" });
        web
    });
    let built = cluster(pods.collect());
    for packing in [Packing::Cheapest, Packing::Karpenter] {
        let inputs = built.inputs(packing);
        let plan = decide(&inputs);
        assert_eq!(plan.pending, [], "{packing:?}");
        assert_eq!(check(&plan, &inputs), [], "{packing:?}");
    }
}
