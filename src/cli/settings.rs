//! Where what was typed, `cutlist.yaml` and the environment become one.

use std::collections::BTreeMap;

use super::arguments::DefinitionArguments;
use crate::api::source::SourceFile;
use crate::definitions::{self, Definitions};

/// Names that every shell sets. A `${PATH}` in user data is for the instance's shell, and must not become that of the
/// machine on which the definitions are read.
const OF_THE_SHELL: [&str; 16] = [
    "EDITOR", "HOME", "HOSTNAME", "IFS", "LANG", "LOGNAME", "OLDPWD", "PATH", "PPID", "PS1", "PWD", "SHELL", "SHLVL",
    "TERM", "UID", "USER",
];

/// Reads definitions with their variables: those typed, then those of `cutlist.yaml`, then those of the environment,
/// as far as their names occur in the files.
pub fn read_definitions(files: &[SourceFile], arguments: &DefinitionArguments) -> Definitions {
    definitions::read(files, &variables(files, arguments, |name| std::env::var(name).ok()))
}

/// The same to judge every file, as `lint` does.
pub fn lint_definitions(files: &[SourceFile], arguments: &DefinitionArguments) -> Definitions {
    definitions::lint(files, &variables(files, arguments, |name| std::env::var(name).ok()))
}

/// The variables that override those of `cutlist.yaml`, and those that it lacks.
fn variables(
    files: &[SourceFile],
    arguments: &DefinitionArguments,
    environment: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, String> {
    let own = definitions::settings_variables(files);
    let names = definitions::variable_names(files).into_iter();
    let missing = names.filter(|name| !own.contains_key(name) && !OF_THE_SHELL.contains(&name.as_str()));
    let from_environment = missing.filter_map(|name| environment(&name).map(|value| (name, value)));
    from_environment.chain(arguments.variables.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_beats_the_file_beats_the_environment() {
        let file = |path: &str, text: &str| SourceFile::new(path, text);
        let files = [
            file(
                "cutlist.yaml",
                "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { variables: { B: file, C: file } }",
            ),
            file("a.yaml", "x: ${A} ${B} ${C} ${PATH}"),
        ];
        let arguments = DefinitionArguments { variables: vec![("C".to_owned(), "typed".to_owned())] };
        let environment = |name: &str| Some(format!("environment {name}"));
        let expected = [("A", "environment A"), ("C", "typed")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(variables(&files, &arguments, environment), expected);
    }
}
