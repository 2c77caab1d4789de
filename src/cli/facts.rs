//! `cutlist facts`: what EC2 says of the classes, in a file.

use super::arguments::{FactsAction, FactsArguments};
use super::exit::{Failure, Outcome};

#[cfg(feature = "aws")]
mod pull;

pub fn run(arguments: &FactsArguments) -> Result<Outcome, Failure> {
    let FactsAction::Pull(arguments) = &arguments.action;
    #[cfg(feature = "aws")]
    return pull::run(arguments);
    #[cfg(not(feature = "aws"))]
    {
        let path = arguments.path.display();
        let error = anyhow::anyhow!(
            "this build can not ask EC2 about the definitions in {path}: it is without the feature `aws`"
        );
        Err(Failure::failed(error).with_hint("take a build with it: `cargo build --release --features aws`"))
    }
}
