//! Pods by the thousand.

#![cfg(test)]

use cutlist::api::keys;
use serde_json::{Value, json};

use crate::objects::Pod;
use crate::random::Random;

const CPU: [usize; 5] = [100, 250, 500, 1000, 1500];
const MEMORY: [usize; 6] = [100, 256, 512, 1024, 2048, 4096];
const LABEL_VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// The reference's published mix: fifths of plain pods, zone spread, host spread, zone affinity to one's own kind, and
/// one per host; what is left over is plain (reference, section 9.4).
pub fn diverse(count: usize) -> Vec<Pod> {
    let mut random = Random::new(42);
    let fifth = count / 5;
    let mut pods = Vec::new();
    add(&mut pods, "generic", fifth, |_| generic(&mut random));
    add(&mut pods, "zone-spread", fifth, |_| spread(&mut random, keys::ZONE));
    add(&mut pods, "host-spread", fifth, |_| spread(&mut random, keys::HOSTNAME));
    add(&mut pods, "zone-affinity", fifth, |_| affinity(&mut random));
    add(&mut pods, "one-per-host", fifth, |_| one_per_host(&mut random));
    let left = count - pods.len();
    add(&mut pods, "rest", left, |_| generic(&mut random));
    pods
}

fn add(pods: &mut Vec<Pod>, prefix: &str, count: usize, mut make: impl FnMut(usize) -> Pod) {
    pods.extend((0..count).map(|number| Pod { name: format!("{prefix}-{number}"), ..make(number) }));
}

fn sized(random: &mut Random, labels: Value, spec: Value) -> Pod {
    let (millicores, mebibytes) = (random.pick(&CPU), random.pick(&MEMORY));
    Pod { name: String::new(), labels, millicores, mebibytes, spec, owner: None }
}

fn generic(random: &mut Random) -> Pod {
    let labels = json!({ "my-label": random.pick(&LABEL_VALUES) });
    sized(random, labels, json!({}))
}

/// Spread over pods that are chosen without regard to the pod's own label.
fn spread(random: &mut Random, topology_key: &str) -> Pod {
    let labels = json!({ "my-label": random.pick(&LABEL_VALUES) });
    let selected = json!({ "my-label": random.pick(&LABEL_VALUES) });
    sized(random, labels, spread_over(topology_key, &selected))
}

fn spread_over(topology_key: &str, selected: &Value) -> Value {
    json!({ "topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": topology_key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": selected },
    }] })
}

fn affinity(random: &mut Random) -> Pod {
    let labels = json!({ "my-affinity": random.pick(&LABEL_VALUES) });
    let term = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": keys::ZONE });
    let spec = json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    sized(random, labels, spec)
}

fn one_per_host(random: &mut Random) -> Pod {
    let labels = json!({ "app": "nginx" });
    let term = json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": keys::HOSTNAME });
    let spec =
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    sized(random, labels, spec)
}

/// Identical pods that would like a zone, and would like to be apart: by zone, which cannot be, and by host.
pub fn with_preferences(count: usize) -> Vec<Pod> {
    let labels = json!({ "app": "nginx" });
    let apart = |weight: u32, topology_key: &str| {
        json!({ "weight": weight, "podAffinityTerm": {
            "labelSelector": { "matchLabels": labels }, "topologyKey": topology_key,
        } })
    };
    let in_zone = json!({ "matchExpressions": [
        { "key": keys::ZONE, "operator": "In", "values": ["test-zone-1"] },
    ] });
    let spec = json!({ "affinity": {
        "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": in_zone }] },
        "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            apart(10, keys::ZONE), apart(1, keys::HOSTNAME),
        ] },
    } });
    let one = sized(&mut Random::new(42), labels, spec);
    let mut pods = Vec::new();
    add(&mut pods, "preferring", count, |_| one.clone());
    pods
}

/// Half small, half large, each kind once per host (reference, section 9.7, `hostNameSpreadingXL`).
pub fn spread_over_hosts(count: usize) -> Vec<Pod> {
    let mut pods = Vec::new();
    for (kind, millicores, mebibytes) in [("small", 900, 3100), ("large", 3500, 28 * 1024)] {
        let labels = json!({ "app": kind });
        let spec = spread_over(keys::HOSTNAME, &labels);
        let one = Pod { name: String::new(), labels, millicores, mebibytes, spec, owner: Some(kind.to_owned()) };
        add(&mut pods, kind, count / 2, |_| one.clone());
    }
    pods
}

/// Deployments of equal numbers of pods, as clusters have them: each with its own labels and requests; a third of them
/// spread over zones.
pub fn deployments(seed: u64, deployments: usize, count: usize) -> Vec<Pod> {
    let mut random = Random::new(seed);
    let mut pods = Vec::new();
    for deployment in 0..deployments {
        let name = format!("web-{deployment}");
        let labels = json!({ "app": name, "pod-template-hash": format!("{:x}", 0x5000_0000 + deployment) });
        let spec = if deployment % 3 == 0 { spread_over(keys::ZONE, &json!({ "app": name })) } else { json!({}) };
        let one = Pod { owner: Some(name.clone()), ..sized(&mut random, labels, spec) };
        let share = count * (deployment + 1) / deployments - count * deployment / deployments;
        add(&mut pods, &name, share, |_| one.clone());
    }
    pods
}

/// One workload of identical pods.
pub fn one_deployment(count: usize) -> Vec<Pod> {
    let labels = json!({ "app": "web" });
    let one = Pod {
        name: String::new(),
        labels,
        millicores: 500,
        mebibytes: 1024,
        spec: json!({}),
        owner: Some("web".to_owned()),
    };
    let mut pods = Vec::new();
    add(&mut pods, "web", count, |_| one.clone());
    pods
}

/// Pods of which no two are alike, as jobs are: each has its own label and its own size.
pub fn one_off(count: usize) -> Vec<Pod> {
    let mut random = Random::new(7);
    let mut pods = Vec::new();
    add(&mut pods, "job", count, |number| Pod {
        name: String::new(),
        labels: json!({ "job-name": format!("job-{number}") }),
        millicores: 100 + random.below(1900),
        mebibytes: 128 + random.below(4000),
        spec: json!({}),
        owner: None,
    });
    pods
}

/// The pods of a team go on the nodes of the team.
pub fn of_team(mut pods: Vec<Pod>, teams: usize) -> Vec<Pod> {
    for (number, pod) in pods.iter_mut().enumerate() {
        let team = format!("team-{}", number % teams);
        pod.spec["nodeSelector"] = json!({ "team": team });
        pod.spec["tolerations"] = json!([{ "key": "team", "value": team, "effect": "NoSchedule" }]);
    }
    pods
}

/// Pods that already run: Deployments of 50, small enough for 30 of them to leave room on a node of 16 CPUs.
pub fn running(count: usize) -> Vec<Pod> {
    let mut pods = small(deployments(13, count.div_ceil(50), count));
    for pod in &mut pods {
        pod.name = format!("running-{}", pod.name);
        pod.labels["app"] = json!(format!("running-{}", pod.labels["app"].as_str().unwrap()));
        pod.spec = json!({});
    }
    pods
}

/// With at most a quarter of a core and a GiB each.
pub fn small(mut pods: Vec<Pod>) -> Vec<Pod> {
    for pod in &mut pods {
        pod.millicores = pod.millicores.min(250);
        pod.mebibytes = pod.mebibytes.min(1024);
    }
    pods
}
