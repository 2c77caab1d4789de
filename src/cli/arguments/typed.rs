//! Which arguments were typed, and did not come from a default or from the environment.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, FromArgMatches};

use super::{Arguments, Command};

/// An argument of `run` that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    pub id: String,
    /// As it is typed: `--branch`, or `REPOSITORY`.
    pub shown: String,
}

/// Parses what was typed.
pub fn parse(
    mut command: clap::Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Arguments, clap::Error> {
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    let typed = matches.subcommand().and_then(|(name, matches)| Some(typed(command.find_subcommand(name)?, matches)));
    let mut parsed = Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
    if let Command::Run(run) = &mut parsed.command {
        run.typed = typed.unwrap_or_default();
    }
    Ok(parsed)
}

fn typed(command: &clap::Command, matches: &ArgMatches) -> Vec<Typed> {
    let is_typed = |argument: &&Arg| {
        // Asked only of what is there: clap panics about what it does not know.
        let is_there = matches.ids().any(|id| id == argument.get_id());
        is_there && matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let of = |argument: &Arg| {
        let id = argument.get_id().to_string();
        let shown = argument.get_long().map_or_else(|| id.to_uppercase(), |long| format!("--{long}"));
        Typed { id, shown }
    };
    command.get_arguments().filter(is_typed).map(of).collect()
}
