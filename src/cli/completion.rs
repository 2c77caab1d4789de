//! `cutlist completion`: what a shell completes commands, options and their values with.

use clap::CommandFactory;
use clap_complete::generate;

use super::arguments::{Arguments, CompletionArguments};
use super::exit::{Failure, Outcome};
use super::output;

pub fn run(arguments: &CompletionArguments) -> Result<Outcome, Failure> {
    let text = String::from_utf8(script(arguments.shell)).map_err(Failure::internal)?;
    output::plain(&text)?;
    Ok(Outcome::Clean)
}

/// What the shell reads.
fn script(shell: clap_complete::Shell) -> Vec<u8> {
    let mut written = Vec::new();
    generate(shell, &mut Arguments::command(), "cutlist", &mut written);
    written
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn each_shell_knows_commands_and_options_and_most_know_values() {
        for shell in Shell::value_variants() {
            let text = String::from_utf8(script(*shell)).unwrap();
            for word in ["simulate", "detailed-exitcode"] {
                assert!(text.contains(word), "{shell}: {word}");
            }
            let knows_values = matches!(shell, Shell::Bash | Shell::Fish | Shell::Zsh);
            assert!(text.contains("cheapest") || !knows_values, "{shell}");
        }
    }
}
