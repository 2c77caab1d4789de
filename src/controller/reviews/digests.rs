//! Plans by the digits that people write of them.

use std::collections::VecDeque;

use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::core::preview::DIGEST_DIGITS;

/// What a reader sees of a digest.
pub fn short(digest: &str) -> String {
    digest.chars().take(DIGEST_DIGITS).collect()
}

/// What a reader sees of a commit.
pub fn short_commit(commit: &str) -> String {
    commit.chars().take(7).collect()
}

/// Digests of one pull request that are remembered; of more, the last.
const SHOWN_MAX: usize = 1_000;

/// The digests that were shown on a pull request, the oldest first: somebody may still look at a page that shows one of them.
#[derive(Clone, Debug, Default)]
pub struct ShownDigests(VecDeque<String>);

impl ShownDigests {
    pub const fn none() -> Self {
        Self(VecDeque::new())
    }

    pub fn add(&mut self, preview: &Preview) {
        self.extend(preview.targets.iter().filter_map(digest_of));
    }

    pub fn extend<'d>(&mut self, digests: impl IntoIterator<Item = &'d str>) {
        for digest in digests {
            if !self.0.iter().any(|shown| shown == digest) {
                self.0.push_back(digest.to_owned());
            }
        }
        while self.0.len() > SHOWN_MAX {
            self.0.pop_front();
        }
    }

    /// Whether another plan than these was shown that begins so. That does not happen by itself.
    fn has_another(&self, digits: &str, meant: &[(&PreviewTarget, &str)]) -> bool {
        self.0.iter().any(|shown| shown.starts_with(digits) && meant.iter().all(|(_, digest)| digest != shown))
    }
}

/// The digest of a target that has something to approve.
pub fn digest_of(target: &PreviewTarget) -> Option<&str> {
    let digest = target.plan.as_ref().map(|plan| plan.digest.as_str());
    digest.filter(|_| target.verdict == PreviewVerdict::Changes)
}

/// The targets of a preview whose plan's digest begins so.
pub fn meant<'p>(preview: &'p Preview, digits: &str) -> Vec<(&'p PreviewTarget, &'p str)> {
    let with_digest = |target: &'p PreviewTarget| Some((target, digest_of(target)?));
    preview.targets.iter().filter_map(with_digest).filter(|(_, digest)| digest.starts_with(digits)).collect()
}

/// Why it can not be told which plan somebody meant by these digits, though one begins so.
pub fn ambiguity(shown: &ShownDigests, digits: &str, meant: &[(&PreviewTarget, &str)]) -> Option<String> {
    let all: Vec<String> = meant.iter().map(|(target, digest)| format!("{digest} for {}", target.cluster)).collect();
    (!all.is_empty() && shown.has_another(digits, meant)).then(|| {
        format!(
            "another plan of this pull request was shown that begins with {digits} as well, which somebody made so: look again, and write all \
             digits of the one that is meant now: /cutlist approve DIGEST, where DIGEST is {}",
            all.join(", or ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_plans_that_begin_alike_all_digits_are_asked_for() {
        let preview_of = |digest: &str| {
            let plan = serde_json::json!({ "id": "a", "digest": digest });
            let target = PreviewTarget {
                cluster: "blue".to_owned(),
                verdict: PreviewVerdict::Changes,
                plan: serde_json::from_value(plan).unwrap(),
                ..PreviewTarget::default()
            };
            Preview { targets: vec![target], ..Preview::default() }
        };
        let digits = "ab".repeat(6);
        let [harmless, evil] = ["0", "1"].map(|end| format!("{}{}", "ab".repeat(31), end.repeat(2)));
        let mut shown = ShownDigests::default();
        shown.add(&preview_of(&harmless));
        let now = preview_of(&harmless);
        assert_eq!(ambiguity(&shown, &digits, &meant(&now, &digits)), None);
        let now = preview_of(&evil);
        shown.add(&now);
        let why = ambiguity(&shown, &digits, &meant(&now, &digits)).unwrap();
        assert!(why.contains(&evil), "{why}");
        assert_eq!(ambiguity(&shown, &evil, &meant(&now, &evil)), None, "nothing else begins with all of them");
        assert_eq!(ambiguity(&shown, &harmless, &meant(&now, &harmless)), None, "there is no plan that is meant");
        for number in 0..2 * SHOWN_MAX {
            shown.add(&preview_of(&format!("{number:064}")));
        }
        assert_eq!(shown.0.len(), SHOWN_MAX);
    }
}
