//! What was typed behind `cutlist migrate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub struct MigrateArguments {
    /// Folders or files with definitions, or patterns, which are decided on together; `-` is a stream of them on standard input
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Write the files instead of showing the change
    #[arg(long)]
    pub write: bool,
}
