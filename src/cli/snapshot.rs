//! `cutlist snapshot`

use super::arguments::SnapshotArguments;
use super::exit::{Failure, Outcome};

pub fn run(_arguments: &SnapshotArguments) -> Result<Outcome, Failure> {
    todo!()
}
