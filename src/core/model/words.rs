//! Counts in words.

/// `1 pod`, `5 pods`
pub fn pods_text(pods: usize) -> String {
    if pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") }
}

/// `3 of its 5 pods`: of a node, so many do not fit.
pub fn part_of(pods: usize, of: usize) -> String {
    format!("{pods} of its {}", pods_text(of))
}
