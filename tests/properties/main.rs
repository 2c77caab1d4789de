//! Properties of plans over random worlds. The judge is `core::plan::check`, which shares nothing with the planner.
//!
//! A run is the same each time. To look further: `PROPTEST_RNG_SEED=1 PROPTEST_CASES=5000 cargo test --test properties`.
//! A failure prints the smallest world found; it becomes a named test in the room it belongs to.

#![cfg(test)]

mod bad_input;
mod build;
mod found;
mod lower_bound;
mod naive;
mod quantities;
mod requirements;
mod world;

use std::fmt::Debug;

use cutlist::api::settings::Packing;
use cutlist::core::plan::check::{ViolationCode, check};
use cutlist::core::plan::decide;
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};

use build::Built;
use world::World;

/// So many worlds take some seconds without optimisation.
const WORLDS: u32 = 96;

/// Cases of a property that costs microseconds.
const VALUES: u32 = 2_000;

fn holds<T: Debug>(inputs: impl Strategy<Value = T>, property: impl Fn(T) -> Result<(), String>) {
    let fixed = Config { cases: VALUES, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    if let Err(failure) = runner.run(&inputs, |input| property(input).map_err(TestCaseError::fail)) {
        panic!("{failure}");
    }
}

fn for_each_world(property: impl Fn(&Built) -> Result<(), String>) {
    let fixed = Config { cases: WORLDS, rng_seed: RngSeed::Fixed(1), max_shrink_iters: 4096, ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let result =
        runner.run(&world::worlds(), |world: World| property(&Built::new(&world)).map_err(TestCaseError::fail));
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

/// The judge is fair: what a scheduler does that asks the filters one pod after the other is no violation.
#[test]
fn placements_that_the_filters_allow_are_valid() {
    for_each_world(|built| {
        let inputs = built.inputs(Packing::Cheapest);
        let plan = naive::place_where_there_is_room(&inputs);
        // Only a planner counts budgets and money.
        let counts = [ViolationCode::WrongBudget, ViolationCode::WrongSummary];
        let violations = check(&plan, &inputs);
        let wrong: Vec<String> =
            violations.iter().filter(|it| !counts.contains(&it.code)).map(ToString::to_string).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    });
}
