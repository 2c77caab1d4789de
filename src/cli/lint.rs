//! `cutlist lint`

use super::arguments::LintArguments;
use super::exit::{Failure, Outcome};

pub fn run(_arguments: &LintArguments) -> Result<Outcome, Failure> {
    todo!()
}
