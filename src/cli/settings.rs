//! Where what was typed, `cutlist.yaml` and the environment become one.

use std::collections::{BTreeMap, BTreeSet};

use super::arguments::{DefinitionArguments, LintArguments};
use crate::api::source::SourceFile;
use crate::definitions::{self, Before, Definitions, GivenVariables, LintOptions, Masks, Memory};

/// A variable of the environment with this prefix is meant for definitions: `CUTLIST_VAR_REGION` gives `REGION`.
pub const PREFIX: &str = "CUTLIST_VAR_";

/// Reads definitions with their variables: those typed, then those of the environment that the operator names, then those
/// of `cutlist.yaml`. The environment holds secrets of whoever runs this, and definitions are written by others: nothing else
/// of it is read.
pub fn read_definitions(files: &[SourceFile], arguments: &DefinitionArguments) -> Definitions {
    definitions::read(files, &given_for(files, arguments))
}

/// Files, and how the user calls them.
#[derive(Clone, Copy)]
pub struct Called<'c> {
    pub files: &'c [SourceFile],
    /// The folder of the files, from the root of their repository.
    pub folder: &'c str,
    /// Paths of the files as they were typed, by their paths in the folder.
    pub typed: &'c BTreeMap<String, String>,
}

/// The same to judge every file, as `lint` does.
pub fn lint_definitions(called: Called<'_>, arguments: &LintArguments, before: &Before) -> Definitions {
    let options = LintOptions { before: Some(before), ..options(arguments, called) };
    definitions::lint_with(called.files, &given_for(called.files, &arguments.definitions), options)
}

/// What was found and defined at another time, to be held against what is now.
pub fn lint_definitions_before(called: Called<'_>, arguments: &LintArguments) -> (Definitions, Before) {
    let given = given_for(called.files, &arguments.definitions);
    definitions::lint_before(called.files, &given, options(arguments, called))
}

fn options<'c>(arguments: &LintArguments, called: Called<'c>) -> LintOptions<'c> {
    LintOptions {
        karpenter: arguments.karpenter_version,
        without_own_baseline: arguments.baseline.is_some(),
        is_root: is_root(arguments),
        folder: called.folder,
        typed: Some(called.typed),
        ..LintOptions::default()
    }
}

/// Whether all that is read is one clone, or a worktree of one.
fn is_root(arguments: &LintArguments) -> bool {
    matches!(&arguments.paths[..], [path] if path.join(".git").exists())
}

/// The same again and again, as `lsp` does.
pub fn lint_definitions_again(
    (files, folder): (&[SourceFile], &str),
    arguments: &DefinitionArguments,
    memory: &mut Memory,
) -> Definitions {
    let options = LintOptions { folder, ..LintOptions::default() };
    definitions::lint_again(files, &given_for(files, arguments), options, memory)
}

fn given_for(files: &[SourceFile], arguments: &DefinitionArguments) -> GivenVariables {
    let mut given = given(arguments, std::env::vars_os().filter_map(as_text));
    given.only_in_environment = definitions::variable_names(files)
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some())
        .collect::<BTreeSet<String>>();
    given
}

/// Hides what comes from the environment, wherever it is shown.
pub fn masks(arguments: &DefinitionArguments) -> Masks {
    given(arguments, std::env::vars_os().filter_map(as_text)).masks()
}

/// The variables that override those of `cutlist.yaml`. A name that was typed comes before the prefix.
fn given(arguments: &DefinitionArguments, environment: impl Iterator<Item = (String, String)>) -> GivenVariables {
    let with_prefix = environment.filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?.to_owned(), value)));
    let mut from_environment: BTreeMap<String, String> = with_prefix.filter(|(name, _)| !name.is_empty()).collect();
    from_environment.extend(arguments.from_environment.iter().map(|it| (it.name.clone(), it.value.clone())));
    GivenVariables {
        typed: arguments.variables.iter().cloned().collect(),
        from_environment,
        only_in_environment: BTreeSet::new(),
        cluster: arguments.cluster.clone(),
    }
}

fn as_text((name, value): (std::ffi::OsString, std::ffi::OsString)) -> Option<(String, String)> {
    Some((name.into_string().ok()?, value.into_string().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::FromEnvironment;

    #[test]
    fn only_what_is_named_comes_from_the_environment() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let arguments = DefinitionArguments {
            variables: vec![pair("C", "typed")],
            from_environment: vec![FromEnvironment { name: "B".to_owned(), value: "named".to_owned() }],
            ..DefinitionArguments::default()
        };
        let environment = [
            pair("A", "secret"),
            pair("CUTLIST_VAR_B", "prefix"),
            pair("CUTLIST_VAR_C", "x"),
            pair("CUTLIST_VAR_", "y"),
        ];
        let given = given(&arguments, environment.into_iter());
        assert_eq!(given.values(), [pair("B", "named"), pair("C", "typed")].into());
        assert_eq!(given.masks().text("named typed"), "${B} typed");
    }
}
