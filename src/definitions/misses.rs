//! What is said of variables that have no value: once for each, where it first stands.

use std::collections::{BTreeMap, BTreeSet};

use super::diagnostic::Severity;
use super::document::Document;
use super::findings::Finding;
use super::given::GivenVariables;
use super::limits::SUBSTITUTED_BYTES;
use super::rules::{Rule, reading, variables};
use super::substitution::{Miss, MissKind, SWITCH};
use super::suggest::{self, Hint};
use crate::core::plan::{Note, NoteCode};

/// The first finding for each variable, and how often it occurs.
#[derive(Debug, Default)]
pub struct Misses {
    undefined: BTreeMap<String, Said>,
    /// Variables that Flux replaces by nothing, by their name and their hint.
    emptied: BTreeMap<(String, Hint), Said>,
    shell: BTreeMap<String, Said>,
    defaults: BTreeMap<String, Said>,
}

#[derive(Debug)]
struct Said {
    finding: Finding,
    form: String,
    places: usize,
}

impl Misses {
    /// Takes what a document lacks. A form that is not supported has a finding at each place, in `found`. `of_flux` has
    /// all variables that Flux has a value for, where that is known.
    pub fn add(
        &mut self,
        document: &Document,
        misses: Vec<Miss>,
        of_flux: Option<&BTreeSet<String>>,
        found: &mut Vec<Finding>,
    ) {
        for miss in misses {
            let Miss { name, form, .. } = &miss;
            if let Some(names) = of_flux.filter(|names| miss.kind == MissKind::Undefined && !names.contains(name)) {
                self.add_emptied(document, &miss, names);
                continue;
            }
            let (said, rule, message) = match miss.kind {
                MissKind::Undefined => (
                    &mut self.undefined,
                    &reading::UNDEFINED_VARIABLE,
                    format!("`${{{name}}}` has no value: left as written"),
                ),
                MissKind::Shell => {
                    (&mut self.shell, &variables::SHELL_TEXT, format!("`{form}` in user data is left as written"))
                }
                MissKind::Default => (
                    &mut self.defaults,
                    &variables::DEFAULT,
                    format!("`{name}` has no value: the default in `{form}` stands for it"),
                ),
                MissKind::TooLong => {
                    let most = SUBSTITUTED_BYTES >> 20;
                    let message = format!(
                        "with the value of `{form}` the document's texts get longer than {most} MiB: left as written"
                    );
                    found.push(at(&reading::LIMIT, document, &miss, message));
                    continue;
                }
                MissKind::Hidden => {
                    let message = format!(
                        "`{form}` would show something of a hidden value, one of the environment: left as written"
                    );
                    let hint = "use all of the value, or give the part as a variable of its own";
                    found.push(at(&reading::SUBSTITUTION, document, &miss, message).hint(hint));
                    continue;
                }
                MissKind::NoYaml => {
                    let message = format!("with the value of `{form}` this is no YAML: Flux can not read it");
                    let hint = "Flux replaces variables where the quotes around them are gone";
                    found.push(at(&reading::SUBSTITUTION, document, &miss, message).hint(hint));
                    continue;
                }
                MissKind::Unsupported => {
                    let message = format!("`{form}` is not a form of substitution that Flux can read: left as written");
                    let hint = format!(
                        "if it is for a shell, write `${form}`, or annotate the object with `{SWITCH}: disabled`"
                    );
                    found.push(at(&reading::SUBSTITUTION, document, &miss, message).hint(hint));
                    continue;
                }
            };
            let first = || Said { finding: at(rule, document, &miss, message), form: form.clone(), places: 0 };
            said.entry(name.clone()).or_insert_with(first).places += 1;
        }
    }

    fn add_emptied(&mut self, document: &Document, miss: &Miss, names: &BTreeSet<String>) {
        let name = &miss.name;
        let hint =
            suggest::did_you_mean(name, names.iter().map(String::as_str)).or_else(|| meant_by_words(name, names));
        let hint = hint.unwrap_or_else(|| {
            format!(
                "name it under `postBuild.substitute` of the Kustomization, or give it a default: `${{{name}:=VALUE}}`"
            )
            .into()
        });
        let message = format!("`${{{name}}}` has no value: Flux writes nothing in its place");
        let first = || Said {
            finding: at(&reading::UNDEFINED_VARIABLE, document, miss, message),
            form: miss.form.clone(),
            places: 0,
        };
        self.emptied.entry((name.clone(), hint)).or_insert_with(first).places += 1;
    }

    pub fn findings(&self, given: &GivenVariables) -> Vec<Finding> {
        let undefined = self.undefined.iter().map(|(name, said)| {
            let hint = if given.only_in_environment.contains(name) {
                format!("the environment has it, and is not asked: name it with --variable-from-environment {name}")
            } else {
                format!("give it with --variable {name}=VALUE or in cutlist.yaml; open is right where the cluster has its value")
            };
            said.finding(hint)
        });
        let emptied = self.emptied.iter().map(|((_, hint), said)| {
            let mut finding = said.finding(hint.clone());
            finding.severity = Severity::Warning;
            finding
        });
        let shell = self.shell.iter().map(|(name, said)| {
            let form = &said.form;
            let or = if name == form {
                String::new()
            } else {
                format!("; if it is a variable of yours, give it with --variable {name}=VALUE")
            };
            said.finding(format!(
                "right for the instance's shell; where Flux substitutes, write `${form}`, or annotate the class with \
                 `{SWITCH}: disabled`{or}"
            ))
        });
        let defaults = self.defaults.iter();
        let defaults =
            defaults.map(|(name, said)| said.finding(format!("give another value with --variable {name}=VALUE")));
        undefined.chain(emptied).chain(shell).chain(defaults).collect()
    }

    /// The notes for those who read a plan. There is one note for each kind, and it has names only.
    pub fn notes(&self) -> Vec<Note> {
        fn names(said: &BTreeMap<String, Said>) -> BTreeSet<&str> {
            said.keys().map(String::as_str).collect()
        }
        let note = |names: BTreeSet<&str>, text: &str| {
            let names: Vec<&str> = names.into_iter().collect();
            (!names.is_empty()).then(|| Note::new(NoteCode::Variables, format!("{text}: {}", names.join(", "))))
        };
        let mut undefined = names(&self.undefined);
        undefined.extend(self.emptied.keys().map(|(name, _)| name.as_str()));
        [
            note(undefined, "variables without a value, left as written"),
            note(names(&self.shell), "text of user data that is left to the instance's shell"),
            note(names(&self.defaults), "variables without a value, for which their defaults stand"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Said {
    fn finding(&self, hint: impl Into<Hint>) -> Finding {
        let mut finding = self.finding.clone();
        if self.places > 1 {
            finding.message.push_str(&format!(" ({} places)", self.places));
        }
        finding.hint(hint)
    }
}

/// The one name of the same words in another order: `limit_cpu` for `cpu_limit`.
fn meant_by_words(name: &str, names: &BTreeSet<String>) -> Option<Hint> {
    fn words(name: &str) -> BTreeSet<String> {
        name.to_lowercase().split(['_', '-', '.']).map(str::to_owned).collect()
    }
    let wanted = words(name);
    let mut meant = names.iter().filter(|other| words(other) == wanted);
    let first = meant.next()?;
    meant.next().is_none().then(|| Hint::question(&[first]))
}

fn at(rule: &'static Rule, document: &Document, miss: &Miss, message: String) -> Finding {
    let mut finding = Finding::at(rule, document, &miss.pointer, miss.place, message);
    finding.span = document.occurrence(&miss.pointer, miss.place, &miss.form).unwrap_or(finding.span);
    finding
}
