//! The architecture that the name of an image tells.

use std::collections::BTreeSet;

/// What names of images say, and the value of the label.
const WORDS: [(&str, &str); 5] =
    [("arm64", "arm64"), ("aarch64", "arm64"), ("x86_64", "amd64"), ("x86-64", "amd64"), ("amd64", "amd64")];

/// That of a machine image, as the label of nodes has it. `None` where the name tells none, or several.
pub fn of_machine_image(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    only(|word| name.contains(word))
}

/// That of a container's image: `arm64v8/nginx`, `example.com/web:1.2-amd64`. The registry and the digest tell nothing.
pub fn of_container_image(image: &str) -> Option<&'static str> {
    let name = image.split('@').next().unwrap_or_default().to_lowercase();
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    let name = name.split_once('/').filter(|(first, _)| is_registry(first)).map_or(name.as_str(), |(_, rest)| rest);
    only(|word| has_word(name, word))
}

fn only(is_said: impl Fn(&str) -> bool) -> Option<&'static str> {
    let said: BTreeSet<&str> = WORDS.iter().filter(|(word, _)| is_said(word)).map(|(_, value)| *value).collect();
    said.first().copied().filter(|_| said.len() == 1)
}

/// Whether the word stands in the name by itself, or with a version such as `v8` behind it.
fn has_word(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(at, _)| {
        let before = name.get(..at).and_then(|it| it.chars().next_back());
        let behind = name.get(at.saturating_add(word.len())..).unwrap_or_default();
        let is_version = behind.strip_prefix('v').is_some_and(|it| it.starts_with(|sign: char| sign.is_ascii_digit()));
        let is_end = !behind.starts_with(|sign: char| sign.is_alphanumeric());
        !before.is_some_and(char::is_alphanumeric) && (is_version || is_end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_container_images_tell_their_architecture() {
        for (image, architecture) in [
            ("example.com/web:1.2-arm64", Some("arm64")),
            ("arm64v8/nginx:1.27", Some("arm64")),
            ("amd64/nginx@sha256:0123", Some("amd64")),
            ("example.com/web-linux-x86_64:1", Some("amd64")),
            ("example.com/web:amd64", Some("amd64")),
            ("example.com/web:1", None),
            ("arm64.example.com/web:1", None),
            ("example.com/web:1-arm64-amd64", None),
            ("example.com/charm64:1", None),
            ("example.com/web:1@sha256:arm64", None),
        ] {
            assert_eq!(of_container_image(image), architecture, "{image}");
        }
    }
}
