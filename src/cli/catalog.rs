//! `cutlist catalog`

use super::arguments::CatalogArguments;
use super::exit::{Failure, Outcome};

pub fn run(_arguments: &CatalogArguments) -> Result<Outcome, Failure> {
    todo!()
}
