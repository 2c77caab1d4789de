//! What is found in EC2 for a node class, on accounts that a test describes.
//!
//! Each folder of `resolution/` holds `case.yaml`: classes, an account, and looks at it, with what has changed and what fails by then; and
//! `expected.txt`: after each look the calls that were made, the status of each class, what finds nothing, and how instances differ.
//! `UPDATE=1 cargo test --test ec2` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files, the environment and the clock")]

mod account;
mod beside;
mod bounds;
mod calls;
mod cases;
mod catalog;
mod claims;
mod controller;
mod denials;
mod drift;
mod ends;
mod figures;
mod fleets;
mod launches;
mod observe;
mod pieces;
mod profiles;
mod queue;
mod quotas;
#[path = "../bench/random.rs"]
#[expect(dead_code, reason = "benchmarks ask for more")]
mod random;
mod scene;
mod statuses;
mod templates;
mod validation;

use std::future::Future;

use scene::{at, identity};

/// Nothing here waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}
