//! End to end: the program against a real control plane on loopback. `make e2e` runs it; `cargo test` does not.
//!
//! ```text
//! cargo test --test e2e -- --programs FOLDER [PART OF A NAME]...
//! ```
//!
//! Each case has a control plane of its own, which takes some five seconds; a few run at the same time. A case that panics has
//! failed; the others go on.
//! The logs of its programs are then in `target/e2e/logs`.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts processes, waits for them and reads their files")]

mod approvals;
mod binding_order;
mod budgets;
mod cluster;
mod control_plane;
mod definitions;
mod deploy;
mod fidelity;
#[expect(dead_code, reason = "of what Git repositories are made for elsewhere, only the environment is used here")]
#[path = "../git/fixture.rs"]
mod fixture;
mod flux;
#[expect(dead_code, reason = "of the forges only one is played here")]
#[path = "../post/forges/mod.rs"]
mod forges;
mod interruptions;
mod load;
#[path = "../bench/machine.rs"]
mod machine;
mod merged;
#[path = "../lint/verdicts/objects.rs"]
mod objects;
mod played;
mod program;
mod proxy;
mod random;
mod refusals;
mod rights;
mod self_tests;
#[expect(dead_code, reason = "not everything that a forge can be told is told here")]
#[path = "../post/server.rs"]
mod server;
#[expect(dead_code, reason = "of the Git servers only one is used here")]
#[path = "../git/servers.rs"]
mod servers;
#[path = "../scenarios/state.rs"]
mod state;
#[path = "../scenarios/table.rs"]
mod table;
mod turns;
mod verdicts;
mod watches;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use control_plane::ControlPlane;
use rights::Deed;

/// One thing that is tried, with a control plane that nothing else uses.
struct Case {
    name: &'static str,
    run: fn(&mut ControlPlane),
    /// Nothing else runs meanwhile, since it measures.
    alone: bool,
    /// It takes long, and runs when it is named.
    on_request: bool,
}

const fn case(name: &'static str, run: fn(&mut ControlPlane)) -> Case {
    Case { name, run, alone: false, on_request: false }
}

const fn on_request(name: &'static str, run: fn(&mut ControlPlane)) -> Case {
    Case { on_request: true, ..case(name, run) }
}

/// As many at the same time: they wait more than they compute.
const WORKERS: usize = 5;

const CASES: &[Case] = &[
    // It waits longest, so it begins first.
    case("a_budget_that_blocks_makes_no_storm_of_calls", budgets::a_budget_that_blocks_makes_no_storm_of_calls),
    // The longest first, so that none is left alone at the end; those that run alone come last.
    case("scenario_expiry", |plane| played::play(plane, "expiry")),
    case("scenario_quickstart", |plane| played::play(plane, "quickstart")),
    case("killed_between_any_two_writes", interruptions::killed_between_any_two_writes),
    case("admission_refuses_for_a_while", refusals::admission_refuses_for_a_while),
    case("each_right_over_nodes_is_missed_by_name", |plane| {
        rights::each_right_is_missed_by_name(plane, &[Deed::Launch, Deed::Replace, Deed::Force]);
    }),
    case("api_server_stops_answering", interruptions::api_server_stops_answering),
    case("scenario_topology_spread", |plane| played::play(plane, "topology-spread")),
    case("watches_that_hang", watches::watches_that_hang),
    case("watches_that_end", watches::watches_that_end),
    case("watches_that_fail", watches::watches_that_fail),
    case("watches_that_are_denied", watches::watches_that_are_denied),
    // Seven minutes and more.
    on_request("watches_of_what_nobody_can_read", watches::watches_of_what_nobody_can_read),
    case("another_replica_takes_over", interruptions::another_replica_takes_over),
    case("who_does_not_wait_to_lead_is_seen", interruptions::who_does_not_wait_to_lead_is_seen),
    case("a_restart_is_not_led_back", interruptions::a_restart_is_not_led_back),
    case("each_right_to_define_is_missed_by_name", |plane| {
        rights::each_right_is_missed_by_name(plane, &[Deed::Define, Deed::Redefine]);
    }),
    case("volumes_are_let_go_first", refusals::volumes_are_let_go_first),
    case("scenario_budget_opens", |plane| played::play(plane, "budget-opens")),
    case("scenario_pool_label", |plane| played::play(plane, "pool-label")),
    case("pods_come_to_be_where_the_plan_says", turns::pods_come_to_be_where_the_plan_says),
    case("plans_hold_in_random_order", binding_order::plans_hold_in_random_order),
    case(
        "what_was_approved_on_a_pull_request_is_carried_out_after_its_merge",
        merged::what_was_approved_on_a_pull_request_is_carried_out_after_its_merge,
    ),
    case("slow_etcd", interruptions::slow_etcd),
    case("says_what_is_wrong_with_credentials", rights::says_what_is_wrong_with_credentials),
    case("objects_of_a_mebibyte", refusals::objects_of_a_mebibyte),
    case("scenario_pool_deleted", |plane| played::play(plane, "pool-deleted")),
    case("each_right_to_undefine_is_missed_by_name", |plane| {
        rights::each_right_is_missed_by_name(plane, &[Deed::Undefine]);
    }),
    case("scenario_pool_renamed", |plane| played::play(plane, "pool-renamed")),
    case("approvals_are_in_ones_own_name", approvals::approvals_are_in_ones_own_name),
    case("of_pods_only_where_they_should_land", approvals::of_pods_only_where_they_should_land),
    case("approved_on_the_command_line", rights::approved_on_the_command_line),
    case("observes_beside_karpenter", rights::observes_beside_karpenter),
    case("nothing_outlives_the_test", self_tests::nothing_outlives_the_test),
    case("chart_and_kustomize_base_apply", deploy::chart_and_kustomize_base_apply),
    case("pods_have_no_more_than_they_need", deploy::pods_have_no_more_than_they_need),
    case("observe_may_write_nothing_but_its_own", deploy::observe_may_write_nothing_but_its_own),
    case("api_server_takes_our_definitions", definitions::api_server_takes_our_definitions),
    case("verdicts_are_those_that_are_recorded", verdicts::verdicts_are_those_that_are_recorded),
    case("karpenters_own_definitions_say_the_same", verdicts::karpenters_own_definitions_say_the_same),
    case("control_plane_runs_pods", self_tests::control_plane_runs_pods),
    Case { alone: true, ..case("a_thousand_pods", load::a_thousand_pods) },
    Case { alone: true, on_request: true, ..case("five_thousand_pods", load::five_thousand_pods) },
    Case {
        alone: true,
        on_request: true,
        ..case("pods_as_the_first_plan_named", fidelity::pods_as_the_first_plan_named)
    },
    // Of Flux's controllers, which `make e2e-gitops` builds.
    on_request("flux_applies_and_cutlist_plans", flux::flux_applies_and_cutlist_plans),
    on_request("flux_artifacts_that_nobody_serves", flux::flux_artifacts_that_nobody_serves),
    on_request("flux_artifacts_that_are_forged", flux::flux_artifacts_that_are_forged),
    on_request("flux_sources_that_have_nothing_new", flux::flux_sources_that_have_nothing_new),
    on_request("flux_artifacts_become_plans", flux::flux_artifacts_become_plans),
    on_request("flux_is_told_in_its_own_form", flux::flux_is_told_in_its_own_form),
    on_request("notification_controller_tells_it_on", flux::notification_controller_tells_it_on),
];

/// What was asked for on the command line.
struct Arguments {
    programs: PathBuf,
    names: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        let (mut programs, mut names) = (None, Vec::new());
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--programs" => programs = words.next().map(PathBuf::from),
                _ => names.push(word),
            }
        }
        let programs =
            programs.expect("--programs FOLDER, as tests/control-plane/build fills it; `make e2e` does both");
        Self { programs: programs.canonicalize().expect("the folder of --programs exists"), names }
    }

    fn chooses(&self, case: &Case) -> bool {
        let is_named = self.names.iter().any(|name| case.name.contains(name.as_str()));
        is_named || (self.names.is_empty() && !case.on_request)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    if arguments.names == [self_tests::HOLD] {
        self_tests::hold(&arguments.programs);
    }
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/e2e/logs");
    let chosen: Vec<&Case> = CASES.iter().filter(|case| arguments.chooses(case)).collect();
    let (alone, together): (Vec<&Case>, Vec<&Case>) = chosen.iter().partition(|case| case.alone);
    let failed = Mutex::new(Vec::new());
    let run = |case: &Case| {
        if !report(case, &arguments.programs, &logs.join(case.name)) {
            failed.lock().unwrap().push(case.name);
        }
    };
    let queue = Mutex::new(together.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = { queue.lock().unwrap().next() } {
                    run(case);
                }
            });
        }
    });
    alone.into_iter().for_each(run);
    let failed = failed.into_inner().unwrap();
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailed: {}\nlogs of their programs: {}", failed.join(", "), logs.display());
    ExitCode::FAILURE
}

/// Runs a case and says how it went; gives whether it passed.
fn report(case: &Case, programs: &Path, logs: &Path) -> bool {
    let begin = Instant::now();
    let (passed, said) = run(case, programs, logs);
    let verdict = if passed { "passed" } else { "FAILED" };
    println!("{verdict} {} in {:.1} s\n{}", case.name, begin.elapsed().as_secs_f64(), said.trim_end_matches('\n'));
    passed
}

/// Whether the case passed and left nothing behind, and what it said.
fn run(case: &Case, programs: &Path, logs: &Path) -> (bool, String) {
    let (mut folder, mut said) = (PathBuf::new(), String::new());
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut plane = ControlPlane::start(programs);
        folder = plane.folder().to_owned();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            (case.run)(&mut plane);
            plane.must_run();
        }));
        if outcome.is_err() {
            plane.keep_logs(logs);
        }
        said = plane.said();
        outcome.is_ok()
    }));
    let passed = outcome.unwrap_or(false) && catch_unwind(|| self_tests::assert_nothing_is_left(&folder)).is_ok();
    (passed, said)
}
