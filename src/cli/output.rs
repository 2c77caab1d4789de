//! What commands print on standard output. What can not be written is an error; that a reader closed the pipe is none.
//!
//! This is the one door, so values of the environment are hidden here: definitions may have put them anywhere.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, anyhow};
use serde_json::Value;

use super::arguments::FormOutput;
use super::failure::Failure;
use crate::adapters::http::without_secrets;
use crate::core::catalog::Catalog;
use crate::definitions::Masks;
use crate::render::terminal;

static HIDDEN: Mutex<Option<Masks>> = Mutex::new(None);

fn masks() -> MutexGuard<'static, Option<Masks>> {
    HIDDEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on these values are not shown.
pub fn hide(hidden: Masks) {
    *masks() = Some(hidden).filter(|hidden| !hidden.is_empty());
}

/// Words of EC2, such as regions and sizes, are no secrets, and stand in every plan.
pub fn show_words_of(catalog: &Catalog) {
    let mut hidden = masks();
    if let Some(old) = hidden.take() {
        let of_types = || catalog.instance_types.iter();
        let is_word = |value: &str| {
            catalog.region.contains(value)
                || of_types().any(|it| {
                    it.name == value
                        || it.offerings.iter().any(|offering| offering.zone == value)
                        || it.requirements.values().flatten().any(|word| word == value)
                })
        };
        *hidden = Some(old.without(is_word)).filter(|hidden| !hidden.is_empty());
    }
}

/// What is hidden.
pub fn hidden() -> Masks {
    masks().clone().unwrap_or_default()
}

/// The text without what is hidden, and without users, passwords and queries of addresses, which may be tokens: libraries put into
/// their errors what they were given.
pub fn shown(text: &str) -> String {
    let text = without_secrets(&without_credentials(text));
    masks().as_ref().map_or_else(|| text.clone(), |hidden| hidden.text(&text))
}

fn without_credentials(text: &str) -> String {
    const SCHEME_ENDS: &str = "://";
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(SCHEME_ENDS) {
        shown.push_str(before);
        shown.push_str(SCHEME_ENDS);
        let ends =
            |character: char| character.is_whitespace() || character.is_control() || "\"'`<>()\\".contains(character);
        let (address, after) =
            behind.split_at_checked(behind.find(ends).unwrap_or(behind.len())).unwrap_or((behind, ""));
        let host = address.rsplit_once('@').map_or(address, |(_, host)| host);
        let path = host.split(['?', '#']).next().unwrap_or(host);
        let query = host.strip_prefix(path).unwrap_or_default();
        let names_a_revision = query.starts_with("?ref=") && !query.contains(['&', '#']);
        shown.push_str(if names_a_revision { host } else { path });
        // What belongs to the sentence.
        if let Some(sign) = query.chars().last().filter(|sign| !names_a_revision && ":,;]}".contains(*sign)) {
            shown.push(sign);
        }
        rest = after;
    }
    shown + rest
}

/// Says something on standard error.
pub fn say(text: &str) {
    anstream::eprintln!("{}", terminal::clean_lines(&shown(text)));
}

/// A page with colours on standard error.
pub fn complain(page: &str) {
    anstream::eprint!("{}", terminal::page(shown(page)));
}

/// For people: what is no terminal gets it without terminal escapes.
pub fn text(text: &str) -> Result<(), Failure> {
    write(&mut anstream::AutoStream::auto(io::stdout()).lock(), terminal::page(shown(text)))
}

/// Markdown, which is read where others have put it.
pub fn document(text: &str) -> Result<(), Failure> {
    plain(&terminal::document(&shown(text)))
}

/// For programs. It is JSON or YAML, which have a way to write everything that a terminal would obey.
pub fn data(text: &str) -> Result<(), Failure> {
    let hidden = masks();
    let masked = hidden.as_ref().map(|hidden| masked_data(text, hidden));
    let text = masked.as_deref().unwrap_or(text);
    let is_json = text.starts_with(['{', '[']);
    let text = if is_json { Cow::Owned(terminal::json(text.to_owned())) } else { Cow::Borrowed(text) };
    plain(&text)
}

/// What is safe already, as it is.
pub fn plain(text: &str) -> Result<(), Failure> {
    write(&mut io::stdout().lock(), text)
}

fn write(out: &mut impl Write, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if !is_closed(&error) => Err(unwritable(error)),
        _ => Ok(()),
    }
}

/// The reader closed the pipe: it has seen enough.
pub fn is_closed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe
}

/// A full disk, for example: whoever reads what was written would take a part for the whole.
pub fn unwritable(error: io::Error) -> Failure {
    Failure::failed(error).within("standard output can not be written")
}

/// What came in, byte for byte, where a program takes it; a terminal gets it as any other text.
pub fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    match io::stdout().is_terminal() {
        true => text(&String::from_utf8_lossy(bytes)),
        false => write(&mut io::stdout().lock(), bytes),
    }
}

/// A patch: byte for byte in a file and a pipe, where a program applies it. A terminal gets it as any other text. What reads a pipe may be a log,
/// too: there it has no lines that a CI system would obey.
pub fn patch(patch: &str) -> Result<(), Failure> {
    let out = io::stdout();
    if out.is_terminal() {
        return text(patch);
    }
    let is_file =
        out.as_fd().try_clone_to_owned().and_then(|out| File::from(out).metadata()).is_ok_and(|it| it.is_file());
    let patch = if is_file { patch.to_owned() } else { terminal::without_commands(patch.to_owned()) };
    write(&mut out.lock(), patch)
}

/// What a text is, which decides how it is kept from being obeyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people, or in a form in which a mark may stand for any character.
    Page,
    /// Markdown.
    Document,
    /// JSON.
    Data,
    /// JSON on each line.
    Lines,
    /// Commands to a CI system, one on each line, that begin with one of these. What else looks like one is none.
    Commands(&'static [&'static str]),
}

/// Standard output, as a file, takes one form: the second would be written over the first. `example` gives one of them a file.
pub fn refuse_one_place<F>(outputs: &[FormOutput<F>], example: &str) -> Result<(), Failure> {
    if outputs.iter().filter(|output| output.file.is_none()).count() > 1 {
        let error = anyhow!("two forms can not both go to standard output");
        return Err(Failure::usage(error).with_hint(format!("give all but one a file: `{example}`")));
    }
    let mut files = BTreeSet::new();
    if let Some(file) = outputs.iter().filter_map(|output| output.file.as_ref()).find(|file| !files.insert(*file)) {
        let error = anyhow!("two forms can not both go to {}", file.display());
        return Err(Failure::usage(error).with_hint("give each a file of its own"));
    }
    Ok(())
}

/// Prints a text of this form.
pub fn print(shown: &str, form: Form) -> Result<(), Failure> {
    match form {
        Form::Page => text(shown),
        Form::Document => document(shown),
        Form::Data => data(shown),
        Form::Lines | Form::Commands(_) => plain(&safe(shown, form)),
    }
}

/// Writes a text of this form to a file, as it would be printed without colours. A link to a file gives way to one.
pub fn file(path: &Path, text: &str, form: Form) -> anyhow::Result<()> {
    let write = || {
        // Whoever proposes a change may put a link where a report goes, to a file of whoever runs this. Devices and pipes are meant.
        let is_link = path.symlink_metadata().is_ok_and(|it| it.is_symlink());
        if is_link && path.metadata().map_or(true, |target| target.is_file()) {
            std::fs::remove_file(path)?;
            return File::create_new(path)?.write_all(safe(text, form).as_bytes());
        }
        std::fs::write(path, safe(text, form))
    };
    write().with_context(|| format!("{} can not be written", path.display()))
}

fn safe(text: &str, form: Form) -> String {
    let data = |text: &str| {
        let masked = masks().as_ref().map(|hidden| masked_data(text, hidden));
        terminal::json(masked.unwrap_or_else(|| text.to_owned()))
    };
    match form {
        Form::Page => terminal::page(shown(text)),
        Form::Document => terminal::document(&shown(text)),
        Form::Data => data(text),
        Form::Lines => text.split_inclusive('\n').map(data).collect(),
        Form::Commands(commands) => text.split_inclusive('\n').map(|line| command(line, commands)).collect(),
    }
}

/// A line that begins with one of the commands keeps it; nothing in the rest of it, and no other line, is one.
fn command(line: &str, commands: &[&str]) -> String {
    // Stands for the command while the rest is looked at: it is not the beginning of a line.
    const OWN: &str = "> ";
    match commands.iter().find_map(|command| Some((command, line.strip_prefix(command)?))) {
        Some((command, rest)) => {
            let rest = terminal::page(shown(&format!("{OWN}{rest}")));
            format!("{command}{}", rest.strip_prefix(OWN).unwrap_or(&rest))
        }
        None => terminal::page(shown(line)),
    }
}

/// JSON stays JSON, in the same form.
fn masked_data(text: &str, hidden: &Masks) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return hidden.text(text) };
    hidden.value(&mut value);
    let is_pretty = text.trim_end().contains('\n');
    let form = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
    form.unwrap_or_default() + if text.ends_with('\n') { "\n" } else { "" }
}

/// Hides and cleans line by line what is written piece by piece.
pub struct Masked<W: Write> {
    to: W,
    line: Vec<u8>,
}

impl<W: Write> Masked<W> {
    pub fn new(to: W) -> Self {
        Self { to, line: Vec::new() }
    }
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            self.to.write_all(terminal::page(shown(&String::from_utf8_lossy(&lines))).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.to.write_all(terminal::page(shown(&String::from_utf8_lossy(&line))).as_bytes())?;
        }
        self.to.flush()
    }
}

impl<W: Write> Drop for Masked<W> {
    fn drop(&mut self) {
        let _closed = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_ours_are_commands() {
        let own = &["::error ", "##vso[task.logissue "];
        for (line, shown) in [
            ("::error file=a::b ::error::c\n", "::error file=a::b ::error::c\n"),
            ("::error ::add-mask::x", "::error ::add-mask::x"),
            ("::add-mask::x", "\u{fffd}::add-mask::x"),
            (
                "##vso[task.logissue type=error;]a ##vso[task.x]\n",
                "##vso[task.logissue type=error;]a #\u{fffd}#vso[task.x]\n",
            ),
            ("##vso[task.setvariable]x", "#\u{fffd}#vso[task.setvariable]x"),
            ("::error a\u{1b}[2Jb\rc", "::error a\u{fffd}[2Jb\u{fffd}c"),
        ] {
            assert_eq!(command(line, own), shown);
        }
    }

    /// Whoever proposes a change chooses where a link of the repository leads.
    #[test]
    fn a_report_is_not_written_through_a_link_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, report) = (folder.path().join("outside"), folder.path().join("report.json"));
        std::fs::write(&outside, "kept").unwrap();
        std::os::unix::fs::symlink(&outside, &report).unwrap();
        for text in ["{}", "{ }"] {
            file(&report, text, Form::Data).unwrap();
            assert_eq!(std::fs::read_to_string(&report).unwrap(), text);
        }
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "kept");
        let device = folder.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        file(&device, "{}", Form::Data).unwrap();
        assert!(device.is_symlink(), "a device is meant");
        let nowhere = folder.path().join("nowhere");
        std::os::unix::fs::symlink(folder.path().join("new"), &nowhere).unwrap();
        file(&nowhere, "{}", Form::Data).unwrap();
        assert!(!folder.path().join("new").exists() && !nowhere.is_symlink());
    }

    #[test]
    fn addresses_are_shown_without_what_may_be_a_token() {
        for (text, shown) in [
            ("client for http://me:pw@host:1/?token=a: no", "client for http://host:1/: no"),
            ("\"http://me:p/w@host/a#b\", and https://token@host", "\"http://host/a\", and https://host"),
            ("[http://host/a?x=1] https://host/b//c?ref=v1", "[http://host/a] https://host/b//c?ref=v1"),
            ("https://me@host/a?ref=v1&token=b", "https://host/a"),
            (
                "aws:///us-east-1a/i-0123 is http://[::1]:80/metrics, see",
                "aws:///us-east-1a/i-0123 is http://[::1]:80/metrics, see",
            ),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }
}
