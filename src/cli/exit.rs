//! The one place where outcomes become exit codes and errors become text with a hint.

use std::process::ExitCode;

use super::output;
use crate::adapters::git::ReadError;

/// What commands end with: command, code, meaning. Whatever was asked for.
pub const EXIT_CODES: &[(&str, u8, &str)] = &[
    ("all", 0, "It did what it was asked for."),
    ("all", 2, "It was called wrongly: an option, or what it names, does not exist."),
    ("all", 3, "It has a mistake of its own, which is worth a report."),
    ("all", 130, "It was interrupted."),
    ("plan", 1, "No plan could be made: definitions, snapshot or cluster could not be read."),
    ("plan --detailed-exitcode", 2, "The plan has steps."),
    (
        "preview",
        1,
        "For some cluster no plan could be made, nothing could be read, or a commit is not signed by who must have. What is printed says which, and why.",
    ),
    ("preview --detailed-exitcode", 2, "The change makes a difference to some cluster."),
    ("post, review --once", 1, "Not all of it could be posted."),
    ("why, simulate, run, approve, snapshot, crds, catalog, ami, facts", 1, "It could not do what it was asked for."),
    ("lint", 1, "There are findings."),
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

/// A command that could not do its work: the cause, the code to exit with, and what the user can do.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub error: anyhow::Error,
    pub hint: Option<String>,
}

impl Failure {
    /// The arguments make no sense together, or name something that is not there.
    pub fn usage(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into(), hint: None }
    }

    /// What it is about stands before the causes.
    pub fn within(self, context: impl std::fmt::Display + Send + Sync + 'static) -> Self {
        Self { error: self.error.context(context), ..self }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What could not be read of a repository, with what the user can do.
    pub fn of_repository(code: u8, error: ReadError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::usage(code, error) }
    }
}

/// For what should not happen: a panic, or a plan that breaks a rule.
pub const INTERNAL: u8 = 3;

/// Runs the program; a panic is told in one place, and ends with its own exit code.
pub fn guarded(run: impl FnOnce() -> ExitCode + std::panic::UnwindSafe) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        output::say(&format!(
            "internal error: {panic}\n\nhint: this is a mistake in cutlist; please report it with the input"
        ));
    }));
    std::panic::catch_unwind(run).unwrap_or(ExitCode::from(INTERNAL))
}

pub fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().ansi().to_string();
    if !error.use_stderr() {
        output::text(&text);
        return ExitCode::SUCCESS;
    }
    output::complain(&text);
    ExitCode::from(2)
}

pub fn report(outcome: Result<Outcome, Failure>) -> ExitCode {
    match outcome {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(failure) => {
            output::say(&format!("error: {}", chain(&failure.error)));
            if let Some(hint) = failure.hint {
                output::say(&format!("\nhint: {hint}"));
            }
            ExitCode::from(failure.code)
        }
    }
}

/// The error and its causes in one line; each says only its own part.
fn chain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
