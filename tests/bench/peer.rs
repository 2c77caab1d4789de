//! The reference's scheduler on the same files, through the program in `tests/peers/karpenter`.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs programs and reads files")]

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::files::Files;
use crate::program::{Failure, run};
use crate::scenarios::Scenario;

/// How long the reference may take: its own limit for one pass, and ours for several of them with all preparation.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub solve_seconds: u64,
    pub process_seconds: u64,
    pub runs: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Solved {
    pub peak_memory_bytes: u64,
    pub runs: Vec<Pass>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pass {
    pub prepare_seconds: f64,
    pub solve_seconds: f64,
    pub order_seconds: f64,
    pub order_complete: bool,
    pub timed_out: bool,
    pub price_per_hour: f64,
    pub node_count: usize,
    pub unplaced_count: usize,
}

impl Solved {
    /// The least that one of the passes took.
    pub fn least(&self, seconds: impl Fn(&Pass) -> f64) -> f64 {
        self.runs.iter().map(seconds).fold(f64::INFINITY, f64::min)
    }

    /// The pass with the fewest pods left, and of these the cheapest.
    pub fn best(&self) -> &Pass {
        let better = |one: &&Pass, two: &&Pass| {
            one.unplaced_count.cmp(&two.unplaced_count).then(one.price_per_hour.total_cmp(&two.price_per_hour))
        };
        self.runs.iter().min_by(better).unwrap()
    }
}

pub fn solve(peer: &Path, files: &Files, scenario: &Scenario, limits: Limits) -> Result<Solved, Failure> {
    let mut command = Command::new(peer);
    command.arg("-definitions").arg(&files.definitions).arg("-snapshot").arg(&files.snapshot);
    command.arg("-catalog").arg(&files.catalog).args(["-runs", &limits.runs.to_string()]);
    command.args(["-limit", &format!("{}s", limits.solve_seconds)]);
    command.args(["-preference-policy", scenario.preference_policy, "-summary"]);
    let (output, errors) = (files.folder.join("reference.json"), files.folder.join("reference.errors"));
    run(&mut command, &output, &errors, limits.process_seconds)?;
    Ok(serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap())
}
