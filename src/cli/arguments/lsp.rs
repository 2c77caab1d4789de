//! What was typed behind `cutlist lsp`.

use clap::Args;

use super::DefinitionArguments;

#[derive(Debug, Args)]
pub struct LspArguments {
    /// Nothing: standard input and output are used in any case. Some editors type it
    #[arg(long, hide = true)]
    pub stdio: bool,
    #[command(flatten)]
    pub definitions: DefinitionArguments,
}
