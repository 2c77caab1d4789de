//! What `lint --fix` and `migrate` write, as a patch that `git apply` and `patch -p1` take.

use similar::TextDiff;

use super::place::relative;

/// A unified diff of one file.
pub fn patch(path: &str, before: &str, after: &str) -> String {
    // A carriage return alone ends no line for the programs that read patches.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (before, after) = (lines(before), lines(after));
    let diff = TextDiff::configure().diff_slices(&before, &after);
    let mut patch = format!("--- {}\n+++ {}\n", name("a", path), name("b", path));
    for hunk in diff.unified_diff().iter_hunks() {
        patch.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            patch.push_str(&format!("{}{}", change.tag(), change.value()));
            if !change.value().ends_with('\n') {
                patch.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    patch
}

/// A file's name in the head of a patch. A tab ends a name that has a space. A name with control characters, quotes or
/// backslashes is quoted, and in it bytes other than those of plain ASCII are written by number.
fn name(side: &str, path: &str) -> String {
    let path = relative(path);
    let is_plain = |byte: u8| !byte.is_ascii_control() && !matches!(byte, b'"' | b'\\');
    if path.bytes().all(is_plain) {
        return format!("{side}/{path}{}", if path.contains(' ') { "\t" } else { "" });
    }
    let quoted = path.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        _ if is_plain(byte) && byte.is_ascii() => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    });
    format!("\"{side}/{}\"", quoted.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_every_byte_and_names_that_end_where_they_should() {
        assert_eq!(
            patch("./a b.yaml", "\u{feff}a: 1\r\nb: x\ry\r\nc: 3", "\u{feff}a: 2\r\nb: x\ry\r\nc: 3"),
            "--- a/a b.yaml\t\n+++ b/a b.yaml\t\n@@ -1,3 +1,3 @@\n-\u{feff}a: 1\r\n+\u{feff}a: 2\r\n b: x\ry\r\n c: 3\n\\ No newline at end of file\n"
        );
        assert_eq!(name("a", "x\ny\"é.yaml"), r#""a/x\012y\"\303\251.yaml""#);
        assert_eq!(name("b", "é.yaml"), "b/é.yaml");
    }
}
