//! Properties of plans over random worlds. The judge is `core::check`, which shares nothing with the planner.
//!
//! A run is the same each time. To look further: `PROPTEST_RNG_SEED=1 PROPTEST_CASES=5000 cargo test --test properties`.
//! A failure prints the smallest world found; it becomes a named test in the room it belongs to.

#![cfg(test)]

mod absurd;
mod absurd_definitions;
mod advice;
mod any_order;
mod bad_input;
mod bought;
mod build;
#[path = "../carried_out/mod.rs"]
mod carried_out;
mod fixed_point;
mod found;
mod lower_bound;
mod naive;
mod penalties;
mod quantities;
mod requirements;
mod world;

use std::fmt::Debug;

use cutlist::api::settings::Packing;
use cutlist::core::check::{ViolationCode, check};
use cutlist::core::inputs::Inputs;
use cutlist::core::planner::decide;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};

use build::Built;
use world::World;

/// So many worlds take some seconds without optimisation.
const WORLDS: u32 = 96;

/// Cases of a property that costs microseconds.
const VALUES: u32 = 2_000;

fn holds<T: Debug>(inputs: impl Strategy<Value = T>, property: impl Fn(T) -> Result<(), String>) {
    holds_for(VALUES, inputs, property);
}

fn holds_for<T: Debug>(cases: u32, inputs: impl Strategy<Value = T>, property: impl Fn(T) -> Result<(), String>) {
    let fixed = Config { cases, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    if let Err(failure) = runner.run(&inputs, |input| property(input).map_err(TestCaseError::fail)) {
        panic!("{failure}");
    }
}

fn for_each_world(property: impl Fn(&Built) -> Result<(), String>) {
    for_worlds(WORLDS, property);
}

fn for_worlds(worlds: u32, property: impl Fn(&Built) -> Result<(), String>) {
    for_worlds_of(worlds, world::worlds(), property);
}

fn for_worlds_of(worlds: u32, strategy: impl Strategy<Value = World>, property: impl Fn(&Built) -> Result<(), String>) {
    let fixed = Config { cases: worlds, rng_seed: RngSeed::Fixed(1), max_shrink_iters: 4096, ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let result = runner.run(&strategy, |world: World| property(&Built::new(&world)).map_err(TestCaseError::fail));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn is_valid(built: &Built, packing: Packing) -> Result<(), String> {
    let inputs = built.inputs(packing);
    let plan = decide(&inputs);
    let text = serde_json::to_string_pretty(&plan).map_err(|error| error.to_string())?;
    let again = serde_json::to_string_pretty(&decide(&inputs)).map_err(|error| error.to_string())?;
    if text != again {
        return Err("the same inputs gave different bytes".to_owned());
    }
    let violations: Vec<String> = check(&plan, &inputs).iter().map(ToString::to_string).collect();
    if violations.is_empty() { Ok(()) } else { Err(violations.join("\n")) }
}

#[test]
fn the_cheapest_plan_is_valid_and_the_same_each_time() {
    for_each_world(|built| is_valid(built, Packing::Cheapest));
}

#[test]
fn the_plan_in_the_order_of_karpenter_is_valid_and_the_same_each_time() {
    for_each_world(|built| is_valid(built, Packing::Karpenter));
}

/// Whoever makes the change that is advised, and plans again, finds a pod fewer waiting.
fn advice_helps(built: &Built, packing: Packing) -> Result<(), String> {
    let inputs = built.inputs(packing);
    for pending in decide(&inputs).pending.iter().filter(|pending| !pending.changes.is_empty()) {
        let mut snapshot = inputs.snapshot.clone();
        let mut pools = inputs.node_pools.to_vec();
        let mut classes = inputs.node_classes.to_vec();
        let mut overlays = inputs.node_overlays.to_vec();
        let mut policy = inputs.policy.clone();
        for change in &pending.changes {
            pools.iter_mut().for_each(|pool| change.apply_to_pool(pool));
            classes.iter_mut().for_each(|class| change.apply_to_node_class(class));
            overlays.extend(change.overlay());
            change.apply_to_limits(&mut policy.limits);
            let meant = snapshot.pods.iter_mut().filter(|pod| pending.pods.contains(&pod.key()));
            meant.for_each(|pod| change.apply_to_pod(pod));
        }
        let (node_classes, node_overlays) = (&classes[..], &overlays[..]);
        let changed =
            Inputs { snapshot: &snapshot, node_pools: &pools, node_classes, node_overlays, policy, ..inputs.clone() };
        let still: Vec<String> = decide(&changed).pending.into_iter().flat_map(|pending| pending.pods).collect();
        if pending.pods.iter().all(|pod| still.contains(pod)) {
            return Err(format!("{:?} still wait after: {:?}", pending.pods, pending.smallest_change));
        }
    }
    Ok(())
}

#[test]
fn what_is_advised_lets_a_pod_in() {
    // Each piece of advice is a plan more.
    for_worlds(WORLDS / 3, |built| advice_helps(built, Packing::Cheapest));
}

/// The judge is fair: what a scheduler does that asks the filters one pod after the other is no violation.
#[test]
fn placements_that_the_filters_allow_are_valid() {
    for_each_world(|built| {
        let inputs = built.inputs(Packing::Cheapest);
        let plan = naive::place_where_there_is_room(&inputs);
        // Only a planner counts budgets and money, and knows what has no future.
        let counts = [ViolationCode::WrongBudget, ViolationCode::WrongSummary, ViolationCode::ExpiredTarget];
        let violations = check(&plan, &inputs);
        let wrong: Vec<String> =
            violations.iter().filter(|it| !counts.contains(&it.code)).map(ToString::to_string).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    });
}
