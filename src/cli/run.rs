//! `cutlist run`

use super::arguments::RunArguments;
use super::exit::{Failure, Outcome};

pub fn run(_arguments: &RunArguments) -> Result<Outcome, Failure> {
    todo!()
}
