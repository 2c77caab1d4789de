//! The one place where outcomes become exit codes and errors become text with a hint.

use std::ffi::OsString;
use std::process::ExitCode;

use super::arguments::Command;
use super::output;
use crate::ports::chain;

pub use super::failure::{Failure, FailureKind};

/// What commands end with: command, code, meaning. Whatever was asked for.
pub const EXIT_CODES: &[(&str, u8, &str)] = &[
    ("all", 0, "It did what it was asked for."),
    ("all", 1, "What it printed could not be written, as to a full disk. A reader that closed the pipe is no error."),
    (
        "all",
        2,
        "It was called wrongly: an option does not exist, or a path, file or revision that was named. With --detailed-exitcode this is 1.",
    ),
    ("all", 3, "It has a mistake of its own, which is worth a report."),
    ("all", 130, "It was interrupted."),
    ("plan", 1, "No plan could be made: definitions, snapshot or cluster could not be read."),
    ("plan --detailed-exitcode", 1, "No plan could be made, or it was called wrongly."),
    ("plan --detailed-exitcode", 2, "The plan has steps."),
    (
        "preview",
        1,
        "For some cluster no plan could be made, nothing could be read, or nothing is known, as by an empty snapshot; or a commit is not signed by who must have. What is printed says which, and why.",
    ),
    ("preview --detailed-exitcode", 1, "The same, or it was called wrongly."),
    ("preview --detailed-exitcode", 2, "The change makes a difference to some cluster."),
    ("post, review --once", 1, "Not all of it could be posted."),
    ("why, simulate, run, approve, snapshot, crds, catalog, ami, facts", 1, "It could not do what it was asked for."),
    ("lint", 1, "There are findings."),
    ("lint, migrate", 2, "It was called wrongly, or something could not be read or written."),
    ("migrate", 1, "Something is left to do by hand."),
    ("lsp", 1, "The editor went without `shutdown`, or what it sent was no message of the protocol."),
];

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Clean,
    /// `lint` found something, or `plan --detailed-exitcode` has changes (see [`Outcome::code`]).
    Findings,
    Changes,
    /// Ctrl-C.
    Interrupted,
}

impl Outcome {
    fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Changes => 2,
            Self::Interrupted => 130,
        }
    }
}

/// For what should not happen: a panic, or a plan that breaks a rule.
const INTERNAL: u8 = 3;

/// The codes of failures, which depend on what else the command says with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    usage: u8,
    failed: u8,
}

impl Codes {
    const USUAL: Self = Self { usage: 2, failed: 1 };
    /// As terraform has it: 2 says that there are changes, and nothing else.
    const DETAILED: Self = Self { usage: 1, failed: 1 };
    /// 1 says that there are findings, or something is left by hand.
    const OF_LINT: Self = Self { usage: 2, failed: 2 };

    pub fn of(command: &Command) -> Self {
        match command {
            Command::Plan(arguments) if arguments.detailed_exitcode => Self::DETAILED,
            Command::Preview(arguments) if arguments.detailed_exitcode => Self::DETAILED,
            Command::Lint(_) | Command::Migrate(_) => Self::OF_LINT,
            _ => Self::USUAL,
        }
    }

    /// Of arguments that make no command.
    fn of_typed(arguments: impl IntoIterator<Item = OsString>) -> Self {
        let is_detailed = arguments.into_iter().any(|typed| typed == "--detailed-exitcode");
        if is_detailed { Self::DETAILED } else { Self::USUAL }
    }

    fn code(self, kind: FailureKind) -> u8 {
        match kind {
            FailureKind::Usage => self.usage,
            FailureKind::Failed => self.failed,
            FailureKind::Internal => INTERNAL,
        }
    }
}

/// Runs the program; a panic is told in one place, and ends with its own exit code.
pub fn guarded(run: impl FnOnce() -> ExitCode + std::panic::UnwindSafe) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        output::say(&format!(
            "internal error: {panic}\n\nhint: this is a mistake in cutlist; please report it with the input"
        ));
    }));
    std::panic::catch_unwind(run).unwrap_or(ExitCode::from(INTERNAL))
}

/// Shows what clap has to say of the arguments `typed`: help, or what is wrong with them.
pub fn unparsed(error: &clap::Error, typed: impl IntoIterator<Item = OsString>) -> ExitCode {
    let codes = Codes::of_typed(typed);
    let text = error.render().ansi().to_string();
    if !error.use_stderr() {
        return report(output::text(&text).map(|()| Outcome::Clean), codes);
    }
    output::complain(&text);
    ExitCode::from(codes.usage)
}

pub fn report(outcome: Result<Outcome, Failure>, codes: Codes) -> ExitCode {
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(failure) => {
            output::say(&format!("error: {}", chain(&*failure.error)));
            if let Some(hint) = failure.hint {
                output::say(&format!("\nhint: {hint}"));
            }
            ExitCode::from(codes.code(failure.kind))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::arguments::Arguments;

    /// A typo is no plan with changes, and a file that can not be read is no finding.
    #[test]
    fn codes_of_failures_are_told_from_what_a_command_found() {
        use FailureKind::{Failed, Internal, Usage};
        for (typed, usage, failed) in [
            ("plan .", 2, 1),
            ("plan . --detailed-exitcode", 1, 1),
            ("preview . --base main --detailed-exitcode", 1, 1),
            ("lint .", 2, 2),
            ("catalog", 2, 1),
        ] {
            let arguments = format!("cutlist {typed}");
            let codes = Codes::of(&Arguments::try_parse_from(arguments.split(' ')).unwrap().command);
            assert_eq!((codes.code(Usage), codes.code(Failed), codes.code(Internal)), (usage, failed, 3), "{typed}");
        }
        let of_typed = |typed: &str| Codes::of_typed(typed.split(' ').map(OsString::from));
        assert_eq!(of_typed("cutlist plan . --packng x --detailed-exitcode"), Codes::DETAILED);
        assert_eq!(of_typed("cutlist plan . --packng x"), Codes::USUAL);
    }
}
