//! What is wrong with an object, without what was found there: a value may be a secret, and who reads logs and plans need not be somebody who
//! may read the object. Where it stands is said beside it.

use serde_json::Error;

/// Around what a text quotes.
const QUOTES: [char; 3] = ['`', '"', '\''];
/// Texts that quote what the reader knows, and nothing that it found.
const OF_READER: [&str; 3] = ["missing field `", "duplicate field `", "expected `"];
/// Texts that say in the end what would do.
const WITH_EXPECTATION: [&str; 5] =
    ["invalid type: ", "invalid value: ", "invalid length ", "unknown field `", "unknown variant `"];
const EXPECTED: &str = ", expected ";

/// The problem of an error, without value, and without its place, which counts from the beginning of a piece.
pub fn problem(error: &Error) -> String {
    let message = error.to_string();
    without_value(message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem))
}

/// ``invalid type: string "p4ssw0rd", expected i32`` without the password.
pub fn without_value(problem: &str) -> String {
    let quoted = problem.find(QUOTES).and_then(|at| problem.split_at_checked(at));
    let Some((before, found)) = quoted.filter(|_| !OF_READER.iter().any(|text| problem.starts_with(text))) else {
        return problem.to_owned();
    };
    let before = before.trim_end();
    let says = WITH_EXPECTATION.iter().any(|text| problem.starts_with(text));
    // A value may hold these words: what the reader says comes last.
    match found.rfind(EXPECTED).filter(|_| says).and_then(|at| found.get(at..)) {
        Some(expected) => format!("{before}{expected}"),
        None => format!("{before} a value that can not be used").trim_start().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_said_without_the_value() {
        for (problem, said) in [
            ("invalid type: string \"p4ss\", expected i32", "invalid type: string, expected i32"),
            ("invalid type: string \"a \\\", expected p4ss\", expected i32", "invalid type: string, expected i32"),
            ("invalid value: integer `300`, expected u8", "invalid value: integer, expected u8"),
            ("unknown variant `p4ss`, expected one of `A`, `B`", "unknown variant, expected one of `A`, `B`"),
            ("unknown field `p4ss`, expected `a`", "unknown field, expected `a`"),
            ("invalid type: map, expected a string", "invalid type: map, expected a string"),
            ("cpu: `p4ss` is no quantity, expected p4ss", "cpu: a value that can not be used"),
            ("\"p4ss\" is none", "a value that can not be used"),
            ("missing field `spec`", "missing field `spec`"),
            ("expected `,` or `}`", "expected `,` or `}`"),
            ("recursion limit exceeded", "recursion limit exceeded"),
        ] {
            assert_eq!(without_value(problem), said, "{problem}");
        }
    }

    #[test]
    fn the_place_is_said_by_others() {
        let error = serde_json::from_str::<Vec<u8>>("[1,\n \"p4ss at line 1\"]").unwrap_err();
        assert_eq!(problem(&error), "invalid type: string, expected u8");
    }
}
