//! The command line: one file per command, settings resolved in `settings.rs`. The only ring that builds adapters.
//!
//! `cli/run/guard.rs` implements a trait of the Git adapter here, since no adapter may ask `controller/signing`.
//! `cli/review/previews.rs` implements a port here, since no adapter may plan.
#![expect(clippy::disallowed_methods, reason = "this ring reads files, settings and the environment for all others")]

mod ami;
mod approve;
pub mod arguments;
mod catalog;
mod cluster;
mod completion;
mod crds;
pub mod exit;
mod explain;
mod facts;
mod facts_file;
mod failure;
mod files;
mod inputs;
mod lint;
pub mod lsp;
mod migrate;
mod output;
mod patching;
mod patience;
mod plan;
mod post;
mod preview;
mod process;
mod replacing;
mod review;
mod run;
mod schema;
mod settings;
mod signing;
mod simulate;
mod snapshot;
mod why;

pub use files::FileKind;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{Arg, CommandFactory};

use arguments::{Arguments, Command};
use exit::{Codes, Outcome};

/// Parses the arguments, runs the command, reports an error once, and gives the exit code.
pub fn main() -> ExitCode {
    exit::guarded(parse_and_run)
}

/// As the first thread has on most systems: what is nested deep needs it.
const STACK_BYTES: usize = 8 << 20;

/// A variable that a CI system sets to nothing, as of an expression that has no value on a push, says nothing.
fn parsed() -> Result<Arguments, clap::Error> {
    let says_nothing = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let heard = |argument: Arg| match argument.get_env() {
        Some(name) if says_nothing(name) => argument.env(Resettable::Reset),
        _ => argument,
    };
    arguments::parse(without_empty(Arguments::command(), &heard), std::env::args_os())
}

fn without_empty(command: clap::Command, heard: &dyn Fn(Arg) -> Arg) -> clap::Command {
    command.mut_args(heard).mut_subcommands(|command| without_empty(command, heard))
}

fn parse_and_run() -> ExitCode {
    // Fails only where a pool is there already, which then does it.
    let _pool = rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build_global();
    let arguments = match parsed() {
        Ok(arguments) => arguments,
        Err(error) => return exit::unparsed(&error, std::env::args_os()),
    };
    if let Some(definitions) = arguments.command.definitions() {
        output::hide(settings::masks(definitions));
    }
    let codes = Codes::of(&arguments.command);
    let outcome = match arguments.command {
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Preview(arguments) => preview::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Lint(arguments) => lint::run(&arguments),
        Command::Lsp(arguments) => lsp::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Review(arguments) => review::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Approve(arguments) => approve::run(&arguments),
        Command::Post(arguments) => post::run(&arguments),
        Command::Ami(arguments) => ami::run(&arguments),
        Command::Facts(arguments) => facts::run(&arguments),
        Command::Catalog(arguments) => catalog::run(&arguments),
        Command::Snapshot(arguments) => snapshot::run(&arguments),
        Command::Completion(arguments) => completion::run(&arguments),
        Command::Crds => crds::run(),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Version => output::text(concat!("cutlist ", env!("CARGO_PKG_VERSION"), "\n")).map(|()| Outcome::Clean),
        Command::FetchForController => run::fetch_for_controller(),
    };
    exit::report(outcome, codes)
}
