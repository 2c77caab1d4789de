//! What was asked for on the command line.

#![cfg(test)]

use std::path::PathBuf;

use clap::Parser;

use crate::peer::Limits;

#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Typed {
    /// A release build of cutlist
    #[arg(long)]
    cutlist: PathBuf,
    /// The built program of tests/peers/karpenter; without it only our own figures are measured
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Where the files of the scenarios and the table go
    #[arg(long, default_value = "target/bench")]
    folder: PathBuf,
    /// Only small sizes: two minutes
    #[arg(long)]
    quick: bool,
    /// Only rows whose title contains this
    #[arg(long)]
    only: Option<String>,
    /// Times that each of ours is run, where it takes less than two seconds
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Times that the reference is run, as far as they fit into twice its limit
    #[arg(long, default_value_t = 3)]
    peer_runs: usize,
    /// Seconds for one pass of the reference; 60 is its own limit
    #[arg(long, default_value_t = 60)]
    peer_limit: u64,
    /// Seconds for one plan of ours
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Put the table into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// Instead of measuring: compare placements with the reference's on this many random small inputs
    #[arg(long)]
    parity: Option<u64>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug)]
pub struct Arguments {
    pub cutlist: PathBuf,
    pub peer: Option<PathBuf>,
    pub folder: PathBuf,
    pub quick: bool,
    pub runs: usize,
    pub our_limit_seconds: u64,
    pub peer_limits: Limits,
    pub readme: Option<PathBuf>,
    /// Inputs to compare placements on, instead of measuring.
    pub parity: Option<u64>,
    only: Option<String>,
}

impl Arguments {
    pub fn read() -> Self {
        let typed = Typed::parse();
        assert!(typed.bench, "run it with `make bench`, or `cargo bench`: a test it is not");
        let here = |path: PathBuf| std::path::absolute(path).unwrap();
        Self {
            cutlist: here(typed.cutlist),
            peer: typed.peer.map(here),
            folder: here(typed.folder),
            quick: typed.quick,
            runs: typed.runs.max(1),
            our_limit_seconds: typed.limit,
            peer_limits: Limits {
                solve_seconds: typed.peer_limit,
                // Preparation, several passes, and the ordering after each.
                process_seconds: 6 * typed.peer_limit,
                runs: typed.peer_runs.max(1),
            },
            readme: typed.readme,
            parity: typed.parity,
            only: typed.only,
        }
    }

    pub fn chooses(&self, title: &str) -> bool {
        self.only.as_ref().is_none_or(|only| title.contains(only.as_str()))
    }
}
