//! Selectors and the search, on devices that are written down here.

use std::collections::BTreeSet;

use serde_json::json;

use super::{Device, DeviceName, Selector};
use crate::testing::object;

fn device(name: &str) -> Device {
    Device {
        name: DeviceName { driver: "gpu.example.com".into(), pool: "n".into(), device: name.into() },
        attributes: object(json!({
            "model": { "string": "A100" }, "example.org/rack": { "int": 7 }, "nvlink": { "bool": true },
            "driverVersion": { "version": "12.4.0" },
        })),
        capacity: [("memory".to_owned(), "80Gi".to_owned())].into(),
        is_free: true,
    }
}

#[test]
fn selectors_see_a_device_as_kubernetes_does() {
    for (expression, expected) in [
        (r#"device.driver == "gpu.example.com""#, Some(true)),
        (r#"device.attributes["gpu.example.com"].model == "T4""#, Some(false)),
        (r#"device.attributes["example.org"].rack > 6 && device.attributes["gpu.example.com"].nvlink"#, Some(true)),
        (r#"device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("12.3.9"))"#, Some(true)),
        (r#"device.capacity["gpu.example.com"].memory.compareTo(quantity("81920Mi")) == 0"#, Some(true)),
        (r#""rack" in device.attributes["example.org"]"#, Some(true)),
        (r#""rack" in device.attributes["nobody.example.org"]"#, Some(false)),
        (r#"device.attributes["nobody.example.org"].rack == 7"#, None),
        (r#"device.attributes["gpu.example.com"].model"#, None),
        ("1 / 0 == 1", None),
    ] {
        let selector = Selector::new(expression).unwrap();
        assert_eq!(selector.matches(&device("a")).ok(), expected, "{expression}");
    }
}

#[test]
fn expressions_that_take_the_stack_or_the_day_are_refused() {
    for expression in [
        "(".repeat(4000),
        "[".repeat(4000) + &"]".repeat(90),
        "true ? ".repeat(500),
        "[1].all(a, [1].all(b, [1].all(c, a == b)))".to_owned(),
        "device.driver ==".to_owned(),
        String::new(),
        "\u{0}\u{fffd}'".to_owned(),
    ] {
        assert!(Selector::new(&expression).is_err(), "{expression}");
    }
}

#[test]
fn a_search_without_end_is_given_up() {
    use super::{Alternative, ClaimDemand, Constraint, Mode, Request, allocate};
    // Of 60 devices in 30 pairs no three agree, which takes too many tries to find out.
    let devices: Vec<Device> = (0..60)
        .map(|number| Device {
            attributes: object(json!({ "pair": { "int": number / 2 } })),
            ..device(&format!("gpu-{number}"))
        })
        .collect();
    let request = |name: &str, count: usize| Request {
        claim: 0,
        name: name.to_owned(),
        alternatives: vec![Alternative { name: String::new(), mode: Mode::ExactCount(count), selectors: Vec::new() }],
    };
    let all: Vec<usize> = (0..60).collect();
    let pairs = vec![Constraint::of_all(0, "gpu.example.com/pair")];
    let mut demand = ClaimDemand { requests: vec![request("two", 2)], constraints: pairs, ..ClaimDemand::default() };
    let choices = vec![vec![all.clone()]];
    assert_eq!(allocate(&demand, &devices, &choices, &BTreeSet::from([0])), Some(vec![2, 3]));
    demand.requests = vec![request("three", 3)];
    assert_eq!(allocate(&demand, &devices, &choices, &BTreeSet::new()), None);
    demand.constraints.clear();
    demand.requests = vec![request("most", 32), request("more", 1)];
    assert_eq!(allocate(&demand, &devices, &vec![vec![all.clone()], vec![all]], &BTreeSet::new()), None);
}
