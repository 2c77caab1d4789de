//! What was typed behind `cutlist completion`.

use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
pub struct CompletionArguments {
    /// The shell that is to complete
    pub shell: Shell,
}
