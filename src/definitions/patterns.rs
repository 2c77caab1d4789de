//! Patterns of paths, as people know them from `.gitignore`.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

#[derive(Debug, Default)]
pub struct Patterns {
    set: GlobSet,
}

impl Patterns {
    /// A text that is no pattern fits nothing. [`problem`] says why.
    pub fn new(patterns: &[String]) -> Self {
        let mut builder = GlobSetBuilder::new();
        for form in patterns.iter().flat_map(|pattern| forms(pattern)) {
            if let Ok(glob) = GlobBuilder::new(&form).literal_separator(true).build() {
                builder.add(glob);
            }
        }
        Self { set: builder.build().unwrap_or_default() }
    }

    /// Whether the path is a file, or in a folder, that a pattern names.
    pub fn has(&self, path: &str) -> bool {
        self.set.is_match(path)
    }
}

/// Why the text is no pattern.
pub fn problem(pattern: &str) -> Option<String> {
    let error = |form: String| GlobBuilder::new(&form).literal_separator(true).build().err();
    forms(pattern).into_iter().find_map(error).map(|error| error.kind().to_string())
}

/// A pattern fits the named file or folder itself, and what is below it. Without a `/` that may lie anywhere.
fn forms(pattern: &str) -> Vec<String> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let trimmed = pattern.trim_end_matches('/');
    let rooted = match trimmed.strip_prefix('/') {
        Some(rooted) => rooted.to_owned(),
        None if trimmed.contains('/') => trimmed.to_owned(),
        None => format!("**/{trimmed}"),
    };
    if rooted.ends_with("**") {
        return vec![rooted];
    }
    vec![format!("{rooted}/**"), rooted]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore() {
        for (pattern, path, expected) in [
            ("vendor", "vendor/a.yaml", true),
            ("vendor", "x/vendor/y/a.yaml", true),
            ("vendor", "vendors/a.yaml", false),
            ("/vendor", "x/vendor/a.yaml", false),
            ("*.json", "x/a.json", true),
            ("staging/*", "staging/a.yaml", true),
            ("staging/*.yaml", "staging/x/a.yaml", false),
            ("staging/**", "staging/x/a.yaml", true),
            ("**/test/**", "a/test/b.yaml", true),
            ("./pools/", "pools/a.yaml", true),
            ("pools/a.yaml", "pools/a.yaml", true),
            ("**", "a.yaml", true),
            ("[", "[", false),
        ] {
            assert_eq!(Patterns::new(&[pattern.to_owned()]).has(path), expected, "{pattern} {path}");
        }
        assert!(problem("[").is_some() && problem("a{b").is_some());
        assert_eq!(problem("a/**/b-{c,d}.yaml"), None);
    }
}
