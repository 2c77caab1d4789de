//! What a merge of Git leaves in a file where two sides changed the same lines.

use crate::definitions::diagnostic::Span;

/// The line between the two sides. Alone it may be anything.
pub const BETWEEN: &str = "=======";
const BEGIN: &str = "<<<<<<<";
const END: &str = ">>>>>>>";
pub const MESSAGE: &str = "a conflict of a merge is left in the file";
pub const HINT: &str = "keep the lines of one side, or what should become of both, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`";

/// Where each conflict begins. Git writes its marks where lines begin, and nothing of YAML or JSON begins so there.
pub fn places(text: &str) -> Vec<Span> {
    if !text.contains(BEGIN) && !text.contains(END) {
        return Vec::new();
    }
    let (mut found, mut is_open, mut start_byte) = (Vec::new(), false, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let begins = is_mark(line, BEGIN);
        let ends = is_mark(line, END);
        if begins || (ends && !is_open) {
            // In front of the first line the mark of the encoding may stand.
            let before = line.len() - without_mark(line).len();
            let (start_byte, end_byte) = (start_byte + before, start_byte + before + BEGIN.len());
            found.push(Span { line: index + 1, column: 1, start_byte, end_byte });
        }
        is_open = (is_open || begins) && !ends;
        start_byte += line.len();
    }
    found
}

fn without_mark(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
}

/// Whether the line is the mark, with or without the name of a side.
fn is_mark(line: &str, mark: &str) -> bool {
    without_mark(line).strip_prefix(mark).is_some_and(|rest| rest.trim().is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        places(text).iter().map(|it| it.line).collect()
    }

    #[test]
    fn finds_each_conflict_where_it_begins() {
        let conflict = "<<<<<<< HEAD\na: 1\n||||||| base\na: 0\n=======\na: 2\n>>>>>>> other\n";
        assert_eq!(lines(&format!("x: y\n{conflict}b: c\r\n{conflict}")), [2, 10]);
        assert_eq!(lines("\u{feff}<<<<<<< HEAD\r\n=======\r\n>>>>>>>\r\n"), [1]);
        // One side was taken, and a mark was forgotten.
        assert_eq!(lines("a: 1\n>>>>>>> other\n"), [2]);
    }

    #[test]
    fn other_text_is_no_conflict() {
        for text in
            ["a: |\n  <<<<<<< HEAD\n  >>>>>>> x\n", "# <<<<<<< HEAD\n", "<<<<<<<<\n", "<<: *a\n", "a\n=======\n"]
        {
            assert_eq!(lines(text), Vec::<usize>::new(), "{text}");
        }
    }
}
