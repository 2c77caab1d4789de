//! `cutlist plan`

use super::arguments::PlanArguments;
use super::exit::{Failure, Outcome};

pub fn run(_arguments: &PlanArguments) -> Result<Outcome, Failure> {
    todo!()
}
