//! The text that carries signatures and keys, between its first line and its last.
//!
//! The crates read one block, and only as `ssh-keygen` and `gpg` wrap it. A file of keys has many, and a mistake is named with its line.

/// One part of a text between `-----BEGIN LABEL-----` and `-----END LABEL-----`.
pub(super) struct Armoured<'a> {
    /// With the first and the last.
    lines: Vec<&'a str>,
    /// From 1, of its first line.
    pub line: usize,
}

impl Armoured<'_> {
    /// All of it, with no blanks at the ends of lines.
    pub fn whole(&self) -> String {
        self.lines.iter().flat_map(|line| [*line, "\n"]).collect()
    }

    /// What stands inside, in one line.
    pub fn inside(&self) -> String {
        let count = self.lines.len().saturating_sub(2);
        self.lines.iter().skip(1).take(count).map(|line| line.trim()).collect()
    }
}

/// All parts with this label, in their order; `None` where one has no end.
pub(super) fn armoured<'a>(text: &'a str, label: &str) -> Option<Vec<Armoured<'a>>> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut parts = Vec::new();
    let mut open: Option<Armoured<'a>> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line == begin && open.is_none() {
            open = Some(Armoured { lines: Vec::new(), line: index + 1 });
        }
        if let Some(part) = &mut open {
            part.lines.push(line);
            if line == end {
                parts.extend(open.take());
            }
        }
    }
    open.is_none().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_part() {
        let text = "x\n-----BEGIN A-----\nYQ==\n-----END A-----\n-----BEGIN A-----\r\nYg\r\n==\r\n-----END A-----\r\n";
        let parts = armoured(text, "A").unwrap();
        let found: Vec<_> = parts.iter().map(|part| (part.line, part.inside())).collect();
        assert_eq!(found, [(2, "YQ==".to_owned()), (5, "Yg==".to_owned())]);
        assert_eq!(parts[1].whole(), "-----BEGIN A-----\nYg\n==\n-----END A-----\n");
        assert!(armoured("-----BEGIN A-----\nYQ==", "A").is_none() && armoured("", "A").unwrap().is_empty());
    }
}
