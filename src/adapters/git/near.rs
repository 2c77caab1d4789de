//! Names that were perhaps meant.

/// Names shown at most.
const SHOWN_MAX: usize = 5;

/// Those of `names` that are nearest to `wanted`, nearest first; ties by name.
pub(super) fn nearest(wanted: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut ranked: Vec<(usize, String)> = names.into_iter().map(|name| (distance(wanted, &name), name)).collect();
    ranked.sort();
    ranked.dedup();
    ranked.truncate(SHOWN_MAX);
    ranked.into_iter().map(|(_, name)| name).collect()
}

/// How many characters must be changed, added or taken away to make one name of the other (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, character) in left.chars().enumerate() {
        let mut next = vec![index + 1];
        for ((other, pair), before) in right.iter().zip(row.windows(2)).zip(1..) {
            let [diagonal, above] = pair else { continue };
            let beside = next.get(before - 1).copied().unwrap_or(index);
            next.push((diagonal + usize::from(character != *other)).min(above + 1).min(beside + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_changes() {
        for (left, right, expected) in
            [("", "", 0), ("main", "main", 0), ("mian", "main", 2), ("", "ab", 2), ("abc", "", 3), ("v1.2", "v1.3", 1)]
        {
            assert_eq!(distance(left, right), expected, "{left} {right}");
            assert_eq!(distance(right, left), expected, "{right} {left}");
        }
    }

    #[test]
    fn nearest_comes_first() {
        let names = ["production", "main", "maint", "dev", "staging", "v1"].map(str::to_owned);
        assert_eq!(nearest("mian", names), ["main", "maint", "dev", "v1", "staging"]);
    }
}
