//! Post-build substitution as Flux does it: `${NAME}`, `${NAME:=default}` and all other forms that it takes (`forms.rs`), and `$${NAME}`
//! for a literal `${NAME}`. It works on the values of a document, so every place stays that of the file as it is written, and
//! a value can not change the structure around it.
//!
//! Where Flux substitutes, what stands for the text is read again as YAML, as Flux does it (`as_yaml.rs`).
//!
//! A variable without a value is left as written: Flux would put nothing there, which is seldom what was meant, and whoever
//! applies the files may know a value that nobody told us (Flux `substituteFrom`). Text that holds one is open: what it will
//! be is not known, so its form is not judged.
//!
//! User data is a program for the instance's shell, which has the same forms. There only what has a value is replaced: a
//! default belongs to the shell as much as to Flux, and put in its place would make every node of the class another one.
//! Source: Flux, Kustomization, "Post build variable substitution".

mod as_yaml;
mod forms;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::forms::{Form, split_name};
use super::document::{Document, disagreement, scalar, spans};
use super::findings::FindingPlace;
use super::kinds::Kind;
use super::limits;
use super::variables::{AsWritten, Variables};
use crate::core::model::static_hash::whole_hash;

/// Switches substitution off for one object, as annotation or label with the value `disabled`.
pub const SWITCH: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Text for the shell of an instance.
const USER_DATA: (Kind, &str) = (Kind::EC2NodeClass, "/spec/userData");

/// What was not replaced by a value, and where.
#[derive(Clone, Debug)]
pub struct Miss {
    pub kind: MissKind,
    /// The variable; where the form names none, the form.
    pub name: String,
    /// As written, with `${` and `}`.
    pub form: String,
    /// The pointer inside the document, as it was before keys were replaced.
    pub pointer: String,
    pub place: FindingPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissKind {
    /// The variable has no value. The form is left as written.
    Undefined,
    /// The variable has no value, in user data. The form is left as written, for the shell.
    Shell,
    /// The variable has no value, and its default stands there.
    Default,
    /// The form is not supported, and is left as written.
    Unsupported,
    /// The form would give a part of a value that is shown nowhere, or what that value makes of another. Nobody could
    /// hide that where it is shown, so the form is left as written.
    Hidden,
    /// The text would be too long, and is left as written.
    TooLong,
    /// What Flux makes of it is no YAML.
    NoYaml,
}

/// What variables stand for.
#[derive(Clone, Copy, Debug)]
pub struct Values<'v> {
    pub of: &'v BTreeMap<String, String>,
    /// Names of the variables whose values are shown nowhere.
    pub hidden: &'v BTreeSet<String>,
    /// Whether Flux puts the values in, and so reads what stands for a text as YAML.
    pub is_of_flux: bool,
}

/// Replaces variables in every text of the document, keys included.
pub fn apply(kind: Kind, document: &mut Document, values: Values<'_>) -> Vec<Miss> {
    if is_switched_off(&document.value) {
        return Vec::new();
    }
    if !may_have_variables(&document.value) {
        document.variables = Variables::default();
        return Vec::new();
    }
    let mut value = std::mem::take(&mut document.value);
    let written = (!values.hidden.is_empty()).then(|| value.clone());
    let mut walk = Walk {
        document,
        values,
        user_data: (kind == USER_DATA.0).then_some(USER_DATA.1),
        misses: Vec::new(),
        variables: Variables { is_of_flux: values.is_of_flux, ..Variables::default() },
        ambiguous: Vec::new(),
        room: limits::SUBSTITUTED_BYTES,
    };
    walk.value(&mut value, &mut String::new(), as_yaml::In::Mapping);
    let Walk { misses, mut variables, ambiguous, .. } = walk;
    if let Some(written) = written {
        variables.as_written = as_written(kind, &written, &variables.names, values);
    }
    document.ambiguous.extend(ambiguous);
    document.value = value;
    document.variables = variables;
    misses
}

/// Takes every text with a variable for one without a value. What the variable stands for is known where the document
/// is built.
pub fn leave_open(document: &mut Document) {
    fn search(value: &Value, pointer: &str, variables: &mut Variables) {
        match value {
            Value::String(text) if text.contains("${") => {
                variables.open_values.insert(pointer.to_owned());
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.for_each(|(index, item)| search(item, &format!("{pointer}/{index}"), variables));
            }
            Value::Object(members) => {
                for (key, member) in members {
                    let at = spans::join(pointer, key);
                    search(member, &at, variables);
                    if key.contains("${") {
                        variables.open_keys.insert(at);
                    }
                }
            }
            _ => {}
        }
    }
    let mut variables = Variables::default();
    search(&document.value, "", &mut variables);
    document.variables = variables;
}

fn as_written(
    kind: Kind,
    written: &Value,
    names: &BTreeMap<String, BTreeSet<String>>,
    values: Values<'_>,
) -> AsWritten {
    let (hidden, others): (BTreeSet<&String>, BTreeSet<&String>) =
        names.values().flatten().partition(|name| values.hidden.contains(*name));
    if hidden.is_empty() {
        return AsWritten::default();
    }
    let others: BTreeMap<&String, &String> =
        others.into_iter().filter_map(|name| values.of.get_key_value(name)).collect();
    let hash = || whole_hash(&json!({ "written": written, "values": others, "hidden": hidden }));
    AsWritten { hash: (kind == Kind::EC2NodeClass).then(hash), hidden: hidden.into_iter().cloned().collect() }
}

/// Every form begins so.
fn may_have_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains("${") || may_have_variables(value)),
        Value::Array(items) => items.iter().any(may_have_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn is_switched_off(value: &Value) -> bool {
    let metadata = |of| value.get("metadata").and_then(|metadata| metadata.get(of)?.get(SWITCH)?.as_str());
    [metadata("annotations"), metadata("labels")].contains(&Some("disabled"))
}

struct Walk<'a> {
    document: &'a Document,
    values: Values<'a>,
    /// Where the text for a shell is.
    user_data: Option<&'static str>,
    misses: Vec<Miss>,
    variables: Variables,
    ambiguous: Vec<(String, super::document::Disagreement)>,
    /// How many bytes may still be made in this document.
    room: usize,
}

impl Walk<'_> {
    fn value(&mut self, value: &mut Value, pointer: &mut String, around: as_yaml::In) {
        match value {
            Value::String(text) if text.contains("${") => {
                let (new, mut is_open) = self.text(text, pointer, FindingPlace::Value);
                self.note(pointer, text);
                let new = if new == *text {
                    None
                } else if self.variables.is_of_flux && !is_open {
                    let read = self.as_flux(text, new, (pointer, FindingPlace::Value), around);
                    is_open = read.is_none();
                    read
                } else {
                    Some(self.resolve(new, pointer))
                };
                if is_open {
                    self.variables.open_values.insert(pointer.clone());
                } else if self.misses.last().is_some_and(|it| it.kind == MissKind::Shell && it.pointer == *pointer) {
                    self.variables.shell_values.insert(pointer.clone());
                }
                if let Some(new) = new {
                    *value = new;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let length = pointer.len();
                    pointer.push_str(&format!("/{index}"));
                    self.value(item, pointer, as_yaml::In::List);
                    pointer.truncate(length);
                }
            }
            Value::Object(map) => {
                if map.keys().any(|key| key.contains("${")) {
                    *map = std::mem::take(map).into_iter().map(|(key, item)| (self.key(key, pointer), item)).collect();
                }
                for (key, item) in map.iter_mut() {
                    let length = pointer.len();
                    pointer.push('/');
                    pointer.push_str(&spans::escape(key));
                    self.value(item, pointer, as_yaml::In::Mapping);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Renaming moves a member's pointer away from its place; the nearest place around it is used then.
    fn key(&mut self, key: String, pointer: &str) -> String {
        if !key.contains("${") {
            return key;
        }
        let at = spans::join(pointer, &key);
        let (mut new, is_open) = self.text(&key, &at, FindingPlace::Key);
        if self.variables.is_of_flux && !is_open && new != key {
            let read = self.as_flux(&key, new.clone(), (&at, FindingPlace::Key), as_yaml::In::Mapping);
            new = read.as_ref().and_then(scalar).unwrap_or(new);
        }
        let renamed = spans::join(pointer, &new);
        self.note(&renamed, &key);
        if is_open {
            self.variables.open_keys.insert(renamed);
        }
        new
    }

    fn note(&mut self, pointer: &str, text: &str) {
        let found = names(text);
        if !found.is_empty() {
            self.variables.names.entry(pointer.to_owned()).or_default().extend(found.into_iter().map(str::to_owned));
        }
    }

    /// What Flux makes of `new`, which stands for the text with its variables. `None` where that is no YAML. Such a
    /// text is noted as a miss.
    fn as_flux(
        &mut self,
        text: &str,
        new: String,
        (at, place): (&str, FindingPlace),
        around: as_yaml::In,
    ) -> Option<Value> {
        if place == FindingPlace::Value
            && let Some(what) = disagreement(&new).filter(|_| self.is_plain(at))
        {
            self.ambiguous.push((at.to_owned(), what));
        }
        let read = as_yaml::read(text, new, around);
        if read.is_none() {
            let form = first_form(text);
            let (name, pointer) = (split_name(form.trim_start_matches("${")).0.to_owned(), at.to_owned());
            self.misses.push(Miss { kind: MissKind::NoYaml, name, form, pointer, place });
        }
        read
    }

    fn is_plain(&self, pointer: &str) -> bool {
        let origin = self.document.origin(pointer);
        origin.spans.is_plain(&origin.root)
    }

    /// What was written without quotes is read again, so that `${CPU}` can be a number; quoted text stays text.
    fn resolve(&mut self, text: String, pointer: &str) -> Value {
        if !self.is_plain(pointer) {
            return Value::String(text);
        }
        if let Some(what) = disagreement(&text) {
            self.ambiguous.push((pointer.to_owned(), what));
        }
        match serde_yaml::from_str::<Value>(&text) {
            Ok(scalar @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => scalar,
            _ => Value::String(text),
        }
    }

    /// The text with its values, and whether a variable stays in it that is not the shell's.
    fn text(&mut self, text: &str, pointer: &str, place: FindingPlace) -> (String, bool) {
        let misses = &mut self.misses;
        let is_shell = self.user_data == Some(pointer);
        let mut is_open = false;
        let (values, room) = (self.values, self.room);
        let new = expand(text, Context { values, is_shell, room, depth: 0 }, &mut |kind, name, form| {
            is_open |= matches!(kind, MissKind::Undefined | MissKind::Unsupported | MissKind::Hidden);
            let (name, form, pointer) = (name.to_owned(), form.to_owned(), pointer.to_owned());
            misses.push(Miss { kind, name, form, pointer, place });
        });
        let Some(new) = new else {
            let form = first_form(text);
            let (name, pointer) = (split_name(form.trim_start_matches("${")).0.to_owned(), pointer.to_owned());
            misses.push(Miss { kind: MissKind::TooLong, name, form, pointer, place });
            return (text.to_owned(), true);
        };
        self.room -= new.len().min(self.room);
        (new, is_open)
    }
}

type Tell<'t> = dyn FnMut(MissKind, &str, &str) + 't;

/// What texts are expanded with.
#[derive(Clone, Copy)]
struct Context<'v> {
    values: Values<'v>,
    is_shell: bool,
    /// How many bytes the text may have at most.
    room: usize,
    /// How many defaults stand inside each other.
    depth: usize,
}

/// The first `${...}` of a text.
fn first_form(text: &str) -> String {
    let after = text.split_once("${").map_or("", |(_, after)| after);
    let inner = split_at_closing(after).map_or("", |(inner, _)| inner);
    format!("${{{inner}}}")
}

/// Gives `None` where the text would get too long.
fn expand(text: &str, context: Context<'_>, tell: &mut Tell<'_>) -> Option<String> {
    // A text that keeps its length makes the document no longer.
    let room = context.room.max(text.len());
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        if before.len().abs_diff(before.trim_end_matches('$').len()) % 2 == 1 {
            // `$${NAME}` stands for `${NAME}`; the first of the two is written already.
            out.push('{');
            rest = after;
            continue;
        }
        let Some((inner, behind)) = split_at_closing(after) else {
            // The form may be text to a shell, or to whoever else reads it.
            if context.values.is_of_flux {
                let form = format!("${{{}", split_name(after).0);
                tell(MissKind::Unsupported, &form, &form);
            }
            out.push_str("${");
            rest = after;
            break;
        };
        let form = format!("${{{inner}}}");
        let room = room.checked_sub(out.len())?;
        match replacement(inner, Context { room, ..context }, tell) {
            Replacement::Text(value) => out.push_str(&value),
            Replacement::TooLong => return None,
            Replacement::Left(kind) => {
                let name = forms::read(inner).map_or_else(|| split_name(inner).0, |(name, _)| name);
                tell(kind, if name.is_empty() { &form } else { name }, &form);
                out.push_str(&form);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    (out.len() <= room).then_some(out)
}

enum Replacement<'v> {
    Text(Cow<'v, str>),
    TooLong,
    /// The form stays as written.
    Left(MissKind),
}

/// What stands for `inner`, the text between the braces.
fn replacement<'v>(inner: &str, context: Context<'v>, tell: &mut Tell<'_>) -> Replacement<'v> {
    let Context { values, is_shell, depth, .. } = context;
    let read = forms::read(inner);
    let value = values.of.get(read.map_or_else(|| split_name(inner).0, |(name, _)| name));
    if is_shell && value.is_none() {
        return Replacement::Left(MissKind::Shell);
    }
    let Some((name, form)) = read else { return Replacement::Left(MissKind::Unsupported) };
    match (value, form) {
        (Some(value), Form::Plain) => Replacement::Text(value.as_str().into()),
        (Some(value), Form::Default(_)) if !value.is_empty() => Replacement::Text(value.as_str().into()),
        (_, Form::Default(_)) if depth >= limits::SUBSTITUTION_DEPTH => Replacement::Left(MissKind::Unsupported),
        (_, Form::Default(default)) => {
            if value.is_none() {
                tell(MissKind::Default, name, &format!("${{{inner}}}"));
            }
            let expanded = expand(default, Context { depth: depth + 1, ..context }, tell);
            expanded.map_or(Replacement::TooLong, |text| Replacement::Text(text.into()))
        }
        (Some(_), _) if values.hidden.contains(name) || names(inner).iter().any(|it| values.hidden.contains(*it)) => {
            Replacement::Left(MissKind::Hidden)
        }
        (Some(value), form) => changed(value, form, context),
        (None, _) => Replacement::Left(MissKind::Undefined),
    }
}

/// What the form makes of the value.
fn changed<'v>(value: &str, form: Form<'_>, context: Context<'v>) -> Replacement<'v> {
    let argument = |text| argument(text, context);
    let text = match form {
        Form::Plain | Form::Default(_) => Some(value.to_owned()),
        Form::Length => Some(forms::length(value)),
        Form::Case(case) => Some(forms::in_case(value, case)),
        Form::Substring { offset, length } => match (argument(offset), length.map(argument)) {
            (Some(offset), None) => forms::part(value, &offset, None),
            (Some(offset), Some(Some(length))) => forms::part(value, &offset, Some(&length)),
            _ => None,
        },
        Form::Trim { side, is_longest, pattern } => {
            argument(pattern).and_then(|pattern| forms::trimmed(value, side, is_longest, &pattern))
        }
        Form::Replace { what, old, new } => match (argument(old), new.map(argument)) {
            (Some(old), None) => Some(forms::replaced(value, what, &old, None)),
            (Some(old), Some(Some(new))) => {
                // Each replacement may come as often as there are characters.
                let added = value.matches(old.as_ref()).count().saturating_mul(new.len());
                if added > context.room {
                    return Replacement::TooLong;
                }
                Some(forms::replaced(value, what, &old, Some(&new)))
            }
            _ => None,
        },
    };
    text.map_or(Replacement::Left(MissKind::Unsupported), |text| Replacement::Text(text.into()))
}

/// A word, or what stands for a variable. `None` where that is not known.
fn argument<'t>(text: &'t str, context: Context<'_>) -> Option<Cow<'t, str>> {
    if !text.starts_with("${") {
        return Some(text.into());
    }
    if context.depth >= limits::SUBSTITUTION_DEPTH {
        return None;
    }
    let mut is_known = true;
    let expanded = expand(text, Context { depth: context.depth + 1, ..context }, &mut |_, _, _| is_known = false)?;
    is_known.then_some(expanded.into())
}

/// Splits behind `${` at the brace that closes it.
fn split_at_closing(text: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    let mut before = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '{' if before == '$' => open += 1,
            '}' => {
                open -= 1;
                if open == 0 {
                    let (inner, rest) = text.split_at_checked(index)?;
                    return Some((inner, rest.strip_prefix('}')?));
                }
            }
            _ => {}
        }
        before = character;
    }
    None
}

/// Names of variables that occur in `text`, whether or not they will be replaced.
pub fn names(text: &str) -> BTreeSet<&str> {
    text.split("${").skip(1).map(|after| split_name(after).0).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_in(text: &str, is_shell: bool) -> (String, Vec<String>) {
        let variables = [("NAME", "demo"), ("EMPTY", ""), ("_x9", "y"), ("SECRET", "hunter22")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut misses = Vec::new();
        let hidden = BTreeSet::from(["SECRET".to_owned()]);
        let values = Values { of: &variables, hidden: &hidden, is_of_flux: false };
        let context = Context { values, is_shell, room: limits::SUBSTITUTED_BYTES, depth: 0 };
        let out = expand(text, context, &mut |kind, name, form| {
            misses.push(match kind {
                MissKind::Undefined => name.to_owned(),
                MissKind::Shell => format!("$ {name}"),
                MissKind::Default => format!("= {name}"),
                MissKind::Unsupported => format!("? {form}"),
                MissKind::Hidden => format!("hidden {name}"),
                MissKind::TooLong | MissKind::NoYaml => unreachable!("it is told by who expands the text"),
            });
        });
        (out.unwrap(), misses)
    }

    fn run(text: &str) -> (String, Vec<String>) {
        run_in(text, false)
    }

    #[test]
    fn replaces_as_flux_does() {
        for (text, expected) in [
            ("role-${NAME}", "role-demo"),
            ("${NAME}${_x9}", "demoy"),
            ("${EMPTY:=fallback}", "fallback"),
            ("${EMPTY}", ""),
            ("${EMPTY:=${NAME}-x}", "demo-x"),
            ("$${NAME}", "${NAME}"),
            ("$${NAME} ${NAME}", "${NAME} demo"),
            ("${NAME^^}-${NAME:0:2}-${#NAME}", "DEMO-de-4"),
            ("${NAME/m/${_x9}}${NAME##d?}", "deyomo"),
            ("${EMPTY:?none}", "none"),
            ("$NAME ${", "$NAME ${"),
            ("${NAME", "${NAME"),
        ] {
            assert_eq!(run(text), (expected.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn leaves_what_it_can_not_replace_and_says_so() {
        assert_eq!(run("a ${OTHER} b"), ("a ${OTHER} b".to_owned(), vec!["OTHER".to_owned()]));
        assert_eq!(run("${NAME/a}"), ("${NAME/a}".to_owned(), vec!["? ${NAME/a}".to_owned()]));
        assert_eq!(run("${#OTHER}"), ("${#OTHER}".to_owned(), vec!["OTHER".to_owned()]));
        assert_eq!(run("${NAME:${OTHER}}"), ("${NAME:${OTHER}}".to_owned(), vec!["? ${NAME:${OTHER}}".to_owned()]));
        assert_eq!(run("${1}"), ("${1}".to_owned(), vec!["? ${1}".to_owned()]));
    }

    /// Anybody could read the value, one character after the other or by what a guess makes of it.
    #[test]
    fn nothing_is_made_of_a_hidden_value() {
        assert_eq!(run("${SECRET} ${SECRET:=x} ${NAME:=${SECRET}}"), ("hunter22 hunter22 demo".to_owned(), vec![]));
        for form in [
            "${SECRET:1}",
            "${SECRET:0:4}",
            "${#SECRET}",
            "${SECRET^^}",
            "${SECRET,}",
            "${SECRET#hunt*}",
            "${SECRET%2}",
            "${SECRET/h/H}",
            "${SECRET//t}",
        ] {
            for is_shell in [false, true] {
                let (text, misses) = run_in(&format!("a {form}"), is_shell);
                assert_eq!(text, format!("a {form}"));
                assert!(
                    matches!(misses.as_slice(), [miss] if miss == "hidden SECRET" || miss.starts_with('?')),
                    "{misses:?}"
                );
            }
        }
        assert_eq!(run("${NAME#${SECRET}}"), ("${NAME#${SECRET}}".to_owned(), vec!["hidden NAME".to_owned()]));
        assert_eq!(run("${EMPTY:=${SECRET:1}}").0, "${SECRET:1}");
    }

    #[test]
    fn a_default_that_stands_for_a_value_is_told() {
        let told = |name: &str| vec![format!("= {name}")];
        assert_eq!(run("${OTHER:=fallback}"), ("fallback".to_owned(), told("OTHER")));
        assert_eq!(run("${OTHER:-fallback}"), ("fallback".to_owned(), told("OTHER")));
        assert_eq!(run("${OTHER:=${NAME}-x}"), ("demo-x".to_owned(), told("OTHER")));
    }

    #[test]
    fn a_shell_keeps_what_has_no_value() {
        for form in [
            "${ROLE}",
            "${ROLE:-worker}",
            "${ROLE:=worker}",
            "${ROLE-worker}",
            "${ROLE##*/}",
            "${ROLE%%.*}",
            "${ROLE/a/b}",
            "${ROLE:0:8}",
            "${ROLE^^}",
            "${ROLE:?none}",
            "${ROLE:+set}",
            "${ROLE[@]}",
            "${ROLE:-${NAME}}",
            "${#ROLE}",
        ] {
            assert_eq!(run_in(form, true), (form.to_owned(), vec!["$ ROLE".to_owned()]), "{form}");
        }
        for form in ["${!ROLE}", "${1}", "${@}"] {
            assert_eq!(run_in(form, true), (form.to_owned(), vec![format!("$ {form}")]));
        }
        assert_eq!(run_in("$ROLE ${NAME} ${NAME:-x} $${NAME}", true), ("$ROLE demo demo ${NAME}".to_owned(), vec![]));
        assert_eq!(run_in("${NAME##*/}", true), ("demo".to_owned(), vec![]));
        assert_eq!(run_in("${NAME[@]}", true), ("${NAME[@]}".to_owned(), vec!["? ${NAME[@]}".to_owned()]));
    }

    #[test]
    fn ends_on_endless_nesting() {
        let text = format!("{}x{}", "${A:=".repeat(500), "}".repeat(500));
        let (out, misses) = run(&text);
        assert!(!out.is_empty() && misses.len() == limits::SUBSTITUTION_DEPTH + 1, "{misses:?}");
    }

    #[test]
    fn a_variable_that_is_named_again_and_again_makes_no_endless_text() {
        let variables: BTreeMap<String, String> = [("A".to_owned(), "x".repeat(1000))].into();
        let hidden = BTreeSet::new();
        let values = Values { of: &variables, hidden: &hidden, is_of_flux: false };
        let context = Context { values, is_shell: false, room: 10_000, depth: 0 };
        let expanded = |text: &str| expand(text, context, &mut |_, _, _| {}).map(|text| text.len());
        assert_eq!(expanded(&"${A}".repeat(10)), Some(10_000));
        assert_eq!(expanded(&"${A}".repeat(11)), None);
        assert_eq!(expanded("${B:=${A}${A}${A}${A}${A}${A}}${C:=${A}${A}${A}${A}${A}}"), None, "by way of defaults");
        assert_eq!(expanded(&format!("{}${{D}}", "y".repeat(20_000))), Some(20_004), "as it is written");
        assert_eq!(first_form("a ${B:=${A}} ${C}"), "${B:=${A}}");
    }

    #[test]
    fn lists_the_names_that_occur() {
        assert_eq!(names("${A} $${B} ${C:=${D}} ${1} $E"), BTreeSet::from(["A", "B", "C", "D"]));
    }
}
