//! What of the class's settings can not stay, and what is not known.

use toml_edit::{Item, Key, Table, TableLike, Value};

use super::super::{Finding, FindingCode, UserDataError};
use super::{Ours, STORAGE_COMMAND, known};

/// The line of a byte, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Tables must be tables; of the rest it is said what is unknown and what ours replaces.
pub(super) fn read(root: &Table, text: &str, ours: &Ours, findings: &mut Vec<Finding>) -> Result<(), UserDataError> {
    let mut reader = Reader { text, findings };
    for (key, item) in root.iter().filter(|(key, _)| *key != "settings") {
        let line = reader.line(root, key, item);
        reader.say(
            FindingCode::UnknownSetting,
            line,
            format!("{key} is kept, but Bottlerocket reads `settings` alone"),
        );
    }
    let Some(settings) = reader.table(root, "settings", "settings")? else { return Ok(()) };
    if let Some(commands) = reader.table(settings, "bootstrap-commands", "settings.bootstrap-commands")?
        && let Some(item) = commands.get(STORAGE_COMMAND).filter(|_| ours.storage_command.is_some())
    {
        let line = reader.line(commands, STORAGE_COMMAND, item);
        let text = format!("settings.bootstrap-commands.{STORAGE_COMMAND} is replaced: instanceStorePolicy sets it");
        reader.say(FindingCode::Overridden, line, text);
    }
    let Some(kubernetes) = reader.table(settings, "kubernetes", "settings.kubernetes")? else { return Ok(()) };
    reader.kubernetes(kubernetes, ours)
}

struct Reader<'r> {
    text: &'r str,
    findings: &'r mut Vec<Finding>,
}

impl Reader<'_> {
    fn kubernetes(&mut self, kubernetes: &dyn TableLike, ours: &Ours) -> Result<(), UserDataError> {
        for (key, item) in kubernetes.iter() {
            if !known::VALUES.contains(&key) && !known::TABLES.contains(&key) {
                let line = self.line(kubernetes, key, item);
                let text = format!(
                    "settings.kubernetes.{key} is kept, and is not known here: a Bottlerocket that does not know it \
                     either does not start"
                );
                self.say(FindingCode::UnknownSetting, line, text);
            }
        }
        self.replaced(kubernetes, "settings.kubernetes", ours.values.iter().map(|(key, value)| (*key, value)));
        if let Some(labels) = self.table(kubernetes, "node-labels", "settings.kubernetes.node-labels")? {
            if let Some((key, item)) = labels.iter().find(|(_, item)| item.as_str().is_none()) {
                let message = format!("settings.kubernetes.node-labels.{key} is no text: write it in quotes");
                return Err(UserDataError::malformed(self.line(labels, key, item), message));
            }
            let own = ours.node_labels.iter().map(|(key, value)| (key.as_str(), value));
            self.replaced(labels, "settings.kubernetes.node-labels", own);
        }
        for (name, entries) in &ours.tables {
            let path = format!("settings.kubernetes.{name}");
            let Some(table) = self.table(kubernetes, name, &path)? else { continue };
            for (key, item) in table.iter() {
                let stays = entries.iter().any(|(own, value)| own == key && is_same(item, value));
                if !stays {
                    let line = self.line(table, key, item);
                    let origin = if *name == "node-taints" { "the NodePool" } else { "spec.kubelet of the class" };
                    self.replace(line, format!("{path}.{key}"), &format!("what {origin} says"));
                }
            }
        }
        Ok(())
    }

    /// Says which of these the class has with another value.
    fn replaced<'v>(&mut self, table: &dyn TableLike, path: &str, ours: impl Iterator<Item = (&'v str, &'v Value)>) {
        for (key, value) in ours {
            let Some(item) = table.get(key).filter(|item| !is_same(item, value)) else { continue };
            let line = self.line(table, key, item);
            self.replace(line, format!("{path}.{key}"), &plain(value));
        }
    }

    /// A table of any notation; `None` where there is none.
    fn table<'t>(
        &self,
        parent: &'t dyn TableLike,
        key: &str,
        path: &str,
    ) -> Result<Option<&'t dyn TableLike>, UserDataError> {
        let Some(item) = parent.get(key) else { return Ok(None) };
        let table = item.as_table_like();
        table
            .map(Some)
            .ok_or_else(|| UserDataError::malformed(self.line(parent, key, item), format!("{path} is no table")))
    }

    fn line(&self, table: &dyn TableLike, key: &str, item: &Item) -> usize {
        let span = table.key(key).and_then(Key::span).or_else(|| item.span());
        span.map_or(1, |span| line_of(self.text, span.start))
    }

    fn say(&mut self, code: FindingCode, line: usize, text: String) {
        self.findings.push(Finding::new(code, Some(line), text));
    }

    fn replace(&mut self, line: usize, what: String, by: &str) {
        self.findings.push(Finding::replaced(FindingCode::Overridden, line, what, by));
    }
}

fn is_same(item: &Item, value: &Value) -> bool {
    item.as_value().is_some_and(|had| plain(had) == plain(value))
}

/// The value however it is quoted and laid out.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{}`", text.value()),
        Value::Array(entries) => format!("[{}]", entries.iter().map(plain).collect::<Vec<_>>().join(", ")),
        Value::Integer(number) => number.value().to_string(),
        other => other.clone().decorated("", "").to_string(),
    }
}
