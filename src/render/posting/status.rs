//! The line of a commit status.

use crate::api::preview::{PreviewTarget, PreviewVerdict};
use crate::core::preview::DIGEST_DIGITS;
use crate::render::plan::short;
use crate::render::terminal::clean;

const HOUR: u64 = 3_600;
/// A snapshot that is older says nothing about now: the reader is told, and nothing is required by it.
const STALE_SECONDS: u64 = 24 * HOUR;

/// Whether the target was planned from a snapshot that is more than a day old, or that tells nothing of the cluster.
pub fn is_stale(target: &PreviewTarget) -> bool {
    target.not_known.is_some() || age(target).is_some_and(|seconds| seconds > STALE_SECONDS)
}

fn age(target: &PreviewTarget) -> Option<u64> {
    target.snapshot.as_ref()?.age_seconds
}

/// `cutlist/CLUSTER/ENVIRONMENT`: the name that a required status is known by.
pub fn context(target: &PreviewTarget, name: &str, characters: usize) -> String {
    let parts = [name, &target.cluster, &target.environment];
    let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).map(clean).collect();
    cut(&parts.join("/"), characters)
}

/// The headline in at most so many characters. Before it stands the age of an old snapshot, and behind it the plan's
/// digest.
pub fn description(target: &PreviewTarget, characters: usize) -> String {
    let before = match age(target) {
        None if target.snapshot.is_some() => "snapshot of unknown age: ".to_owned(),
        Some(seconds) if seconds >= 2 * STALE_SECONDS => format!("snapshot {} d old: ", seconds / STALE_SECONDS),
        // The age is in whole hours, so that the line stays the same for a while.
        Some(seconds) if seconds > HOUR => format!("snapshot {} h old: ", seconds / HOUR),
        _ => String::new(),
    };
    let shows_plan = target.verdict == PreviewVerdict::Changes;
    let behind = target
        .plan
        .as_ref()
        .filter(|_| shows_plan)
        .map_or_else(String::new, |plan| format!(" · plan {}", short(&clean(&plan.digest), DIGEST_DIGITS)));
    let room = characters.saturating_sub(before.chars().count() + behind.chars().count());
    cut(&format!("{before}{}{behind}", cut(&clean(&target.headline), room)), characters)
}

/// One line of plain text, at most so many characters.
pub fn fitted_line(text: &str, characters: usize) -> String {
    cut(&clean(text), characters)
}

/// At most so many characters, with a sign that more was there.
pub(super) fn cut(text: &str, characters: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= characters {
        return line;
    }
    let kept: String = line.chars().take(characters.saturating_sub(1)).collect();
    if characters == 0 { String::new() } else { format!("{}…", kept.trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::preview::PreviewSnapshot;

    #[test]
    fn the_age_of_a_snapshot_is_said_in_hours_and_then_in_days() {
        let said = |hours: u64| {
            let snapshot = PreviewSnapshot { age_seconds: Some(hours * HOUR + 60), ..PreviewSnapshot::default() };
            let target =
                PreviewTarget { snapshot: Some(snapshot), headline: "x".to_owned(), ..PreviewTarget::default() };
            description(&target, 140)
        };
        assert_eq!(
            [0, 1, 47, 48, 186].map(said),
            ["x", "snapshot 1 h old: x", "snapshot 47 h old: x", "snapshot 2 d old: x", "snapshot 7 d old: x"]
        );
        let snapshot = Some(PreviewSnapshot::default());
        let unknown = PreviewTarget { snapshot, headline: "x".to_owned(), ..PreviewTarget::default() };
        assert_eq!(description(&unknown, 140), "snapshot of unknown age: x");
    }
}
