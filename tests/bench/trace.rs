//! Sizes of pods as a cluster had them: `openb_pod_list_default.csv` of Alibaba's `cluster-trace-gpu-v2023`, 8,152 pods of a cluster with
//! accelerators. Counted in nine stretches of some 226 rows each, spread over all of them; what asks for a part of an accelerator
//! asks for one here.

#![cfg(test)]

use serde_json::json;

use crate::objects::Pod;

/// Pods seen, and what each asks for: millicores, MiB, accelerators.
const SEEN: [(usize, usize, usize, usize); 75] = [
    (382, 3152, 5600, 1),
    (297, 11300, 49152, 1),
    (162, 11908, 47104, 1),
    (126, 8000, 30517, 1),
    (94, 11400, 48128, 1),
    (85, 12500, 57344, 0),
    (70, 32000, 49152, 0),
    (68, 18708, 64512, 1),
    (61, 8000, 30517, 0),
    (60, 4152, 10600, 1),
    (44, 4000, 22888, 1),
    (44, 12000, 24576, 1),
    (41, 4000, 15258, 1),
    (33, 16000, 32768, 1),
    (31, 4000, 24576, 1),
    (29, 8000, 16384, 1),
    (29, 12000, 16384, 1),
    (28, 14200, 58368, 1),
    (26, 4000, 30517, 1),
    (26, 15400, 51200, 0),
    (25, 9810, 41560, 1),
    (25, 24200, 93184, 1),
    (20, 15700, 58368, 1),
    (16, 6000, 6144, 1),
    (14, 11400, 77824, 1),
    (13, 8000, 32768, 1),
    (13, 16500, 51200, 0),
    (12, 4000, 31250, 1),
    (11, 6000, 12288, 1),
    (11, 6000, 22888, 1),
    (11, 8200, 33792, 1),
    (10, 12000, 15360, 1),
    (9, 11900, 77824, 1),
    (9, 16000, 65536, 1),
    (7, 88000, 327680, 8),
    (6, 1000, 2048, 1),
    (5, 15200, 80896, 1),
    (4, 4000, 16384, 1),
    (4, 6000, 8192, 1),
    (4, 6000, 18432, 1),
    (4, 14900, 73728, 1),
    (4, 32200, 132096, 4),
    (4, 64200, 263168, 8),
    (3, 7000, 30000, 1),
    (3, 11300, 37888, 1),
    (3, 12000, 18432, 1),
    (3, 12000, 32768, 1),
    (3, 16000, 31250, 0),
    (3, 16000, 49152, 1),
    (2, 1000, 6144, 1),
    (2, 4000, 32768, 1),
    (2, 8000, 15625, 0),
    (2, 8000, 31250, 0),
    (2, 8000, 65536, 1),
    (2, 11900, 43008, 1),
    (2, 12000, 16000, 1),
    (2, 12000, 47104, 1),
    (2, 12000, 49152, 1),
    (2, 16000, 31250, 1),
    (2, 32000, 131072, 4),
    (2, 60200, 320512, 4),
    (1, 6000, 16384, 1),
    (1, 6000, 23552, 1),
    (1, 6000, 32768, 1),
    (1, 6000, 65536, 2),
    (1, 8000, 16000, 1),
    (1, 12500, 65536, 0),
    (1, 14000, 60000, 2),
    (1, 16000, 24576, 1),
    (1, 16000, 32768, 0),
    (1, 16200, 66560, 2),
    (1, 20000, 65536, 0),
    (1, 30200, 160768, 2),
    (1, 32000, 62500, 0),
    (1, 32000, 65536, 0),
];

/// So many pods, of each size its part.
pub fn pods(count: usize) -> Vec<Pod> {
    let all: usize = SEEN.iter().map(|(seen, ..)| seen).sum();
    let mut pods = Vec::new();
    let mut passed = 0;
    for (size, (seen, millicores, mebibytes, accelerators)) in SEEN.into_iter().enumerate() {
        let share = count * (passed + seen) / all - count * passed / all;
        passed += seen;
        pods.extend((0..share).map(|number| pod(format!("size-{size}-{number}"), millicores, mebibytes, accelerators)));
    }
    pods
}

fn pod(name: String, millicores: usize, mebibytes: usize, accelerators: usize) -> Pod {
    let mut requests = json!({ "cpu": format!("{millicores}m"), "memory": format!("{mebibytes}Mi") });
    let mut resources = json!({});
    if accelerators > 0 {
        requests["nvidia.com/gpu"] = json!(accelerators.to_string());
        resources["limits"] = json!({ "nvidia.com/gpu": accelerators.to_string() });
    }
    resources["requests"] = requests;
    let spec = json!({ "containers": [{ "name": "main", "image": "example.com/main:1", "resources": resources }] });
    Pod { name, labels: json!({ "app": "trace" }), millicores, mebibytes, spec, owner: None }
}
