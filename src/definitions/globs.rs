//! Patterns of Argo CD. Each field has rules of its own for what a star stands for.
//! Sources: Argo CD, "Directory" and "Git Generator"; Go, `path.Match`; gobwas/glob; Git, "pathspec".

use globset::{GlobBuilder, GlobMatcher};

/// A pattern that a whole path fits or not.
#[derive(Clone, Debug)]
pub struct Glob(GlobMatcher);

impl Glob {
    /// `directory.include` and `directory.exclude`: a star stands for any signs, `/` among them. `None` for what is no pattern.
    pub fn of_directory(pattern: &str) -> Option<Self> {
        Self::new(&with_single_stars(pattern), false)
    }

    /// The folders of a Git generator: a star ends before a `/`, however many there are, and braces are signs like others.
    pub fn of_folders(pattern: &str) -> Option<Self> {
        Self::new(&with_single_stars(&without_braces(pattern)), true)
    }

    /// The files of a Git generator, as `git ls-files` finds them, which is what Argo CD asks as long as nothing else is set.
    pub fn of_files(pattern: &str) -> Option<Self> {
        Self::new(&with_single_stars(&without_braces(pattern)), false)
    }

    /// The same where Argo CD was told to tell one star from two.
    pub fn of_files_by_parts(pattern: &str) -> Option<Self> {
        Self::new(pattern, true)
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.is_match(path)
    }

    fn new(pattern: &str, is_by_parts: bool) -> Option<Self> {
        let mut builder = GlobBuilder::new(pattern);
        builder.literal_separator(is_by_parts).backslash_escape(true).empty_alternates(true);
        Some(Self(builder.build().ok()?.compile_matcher()))
    }
}

/// Two stars mean what one means.
fn with_single_stars(pattern: &str) -> String {
    let mut single = String::new();
    for sign in pattern.chars() {
        if sign != '*' || !single.ends_with('*') || single.ends_with("\\*") {
            single.push(sign);
        }
    }
    single
}

fn without_braces(pattern: &str) -> String {
    pattern.replace('{', "[{]").replace('}', "[}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Form = fn(&str) -> Option<Glob>;

    #[test]
    fn each_field_has_its_rules() {
        for (form, pattern, path, expected) in [
            (Glob::of_directory as Form, "*.yaml", "a/b.yaml", true),
            (Glob::of_directory, "some/*", "some/a/b.yaml", true),
            (Glob::of_directory, "**/b.yaml", "b.yaml", false),
            (Glob::of_directory, "{*.yml,*.yaml}", "a.yaml", true),
            (Glob::of_directory, "{config.json,env-usw2/*}", "env-usw2/a.yaml", true),
            (Glob::of_directory, "[!ab].yaml", "a.yaml", false),
            (Glob::of_directory, "\\*.yaml", "a.yaml", false),
            (Glob::of_folders, "clusters/*", "clusters/a", true),
            (Glob::of_folders, "clusters/*", "clusters/a/b", false),
            (Glob::of_folders, "clusters/**", "clusters/a/b", false),
            (Glob::of_folders, "{a,b}", "a", false),
            (Glob::of_files, "clusters/*/config.json", "clusters/a/b/config.json", true),
            (Glob::of_files_by_parts, "clusters/*/config.json", "clusters/a/b/config.json", false),
            (Glob::of_files_by_parts, "clusters/**/config.json", "clusters/a/b/config.json", true),
        ] {
            assert_eq!(form(pattern).is_some_and(|glob| glob.has(path)), expected, "{pattern} {path}");
        }
        assert!(Glob::of_directory("[").is_none());
    }
}
