//! What GitHub Actions says of its job. Gitea and Forgejo set the same variables, and one that tells them apart.

use crate::adapters::forge::dialect::{JobContext, Variables};

pub fn found(variable: Variables<'_>) -> Option<JobContext> {
    (variable("GITHUB_ACTIONS").as_deref() == Some("true")).then(|| of_actions(variable))
}

/// `refs/pull/7/merge`, which is the merge that GitHub made to try it. Gitea has `refs/pull/7/head`.
pub fn of_actions(variable: Variables<'_>) -> JobContext {
    let of_reference = |text: String| text.strip_prefix("refs/pull/")?.split('/').next()?.parse().ok();
    let url = variable("GITHUB_SERVER_URL");
    let repository = variable("GITHUB_REPOSITORY");
    let link = match (&url, &repository, variable("GITHUB_RUN_ID")) {
        (Some(url), Some(repository), Some(run)) => Some(format!("{url}/{repository}/actions/runs/{run}")),
        _ => None,
    };
    let is_merge_queue = variable("GITHUB_EVENT_NAME").as_deref() == Some("merge_group");
    let reference = variable("GITHUB_REF");
    let is_tried = reference.as_deref().is_some_and(|it| it.starts_with("refs/pull/") && it.ends_with("/merge"));
    let tried_merge = variable("GITHUB_SHA").filter(|_| is_tried);
    let pull_request = reference.and_then(of_reference);
    // The event says it, which is a file.
    let head = None;
    JobContext { url, repository, pull_request, is_merge_queue, link, tried_merge, head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_variables_of_a_job() {
        let variable = |name: &str| {
            let value = match name {
                "GITHUB_ACTIONS" => "true",
                "GITHUB_SERVER_URL" => "https://github.com",
                "GITHUB_REPOSITORY" => "acme/nodes",
                "GITHUB_REF" => "refs/pull/7/merge",
                "GITHUB_RUN_ID" => "12",
                "GITHUB_SHA" => "abc",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let found = found(&variable).unwrap();
        assert_eq!(found.pull_request, Some(7));
        assert_eq!(found.tried_merge.as_deref(), Some("abc"));
        assert_eq!(found.link.as_deref(), Some("https://github.com/acme/nodes/actions/runs/12"));
        assert_eq!(super::found(&|_| None), None);
    }
}
