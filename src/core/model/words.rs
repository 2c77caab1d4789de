//! Counts in words.

/// `1 pod`, `5 pods`
pub fn pods_text(pods: usize) -> String {
    if pods == 1 { "1 pod".to_owned() } else { format!("{pods} pods") }
}
