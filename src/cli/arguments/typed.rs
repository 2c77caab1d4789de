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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    fn all(command: &clap::Command) -> Vec<&clap::Command> {
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        std::iter::once(command).chain(below.flat_map(all)).collect()
    }

    #[test]
    fn every_argument_has_a_sentence() {
        let root = Arguments::command();
        for command in all(&root) {
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
        }
    }

    /// What a scenario alone goes by.
    #[test]
    fn a_snapshot_of_files_takes_neither_step_nor_seed() {
        for further in [["--after-step", "3"], ["--seed", "3"]] {
            let typed = ["cutlist", "snapshot", "--from", "cluster.json"].into_iter().chain(further);
            assert!(Arguments::try_parse_from(typed).is_err(), "{further:?}");
        }
        let typed = ["cutlist", "snapshot", "--embedded", ".", "--after-step", "3", "--seed", "3"];
        assert!(Arguments::try_parse_from(typed).is_ok());
    }

    #[test]
    fn examples_can_be_typed() {
        let root = Arguments::command();
        let helps = all(&root).into_iter().filter_map(clap::Command::get_after_long_help);
        let texts: Vec<String> = helps.map(ToString::to_string).collect();
        let examples: Vec<&str> =
            texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("  cutlist ")).collect();
        assert!(examples.len() > 15, "{examples:?}");
        for example in examples {
            // What follows is a description, or for the shell.
            let typed = example.split(" > ").next().unwrap_or_default();
            let typed = typed.trim_start().split("  ").next().unwrap_or_default();
            Arguments::try_parse_from(typed.split_whitespace()).unwrap_or_else(|error| panic!("{example}: {error}"));
        }
    }
}
