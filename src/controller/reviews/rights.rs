//! Who may command: those who may write to the repository, and the teams that the operator names.

use super::ReviewRules;
use crate::ports::PortError;
use crate::ports::pull_requests::{Membership, PullRequests, Right, Team};

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Ask,
    Approve,
}

/// Why somebody may not do that; `None`: they may. Asked again each time, and teams every few minutes.
pub async fn refusal<F: PullRequests>(
    forge: &F,
    rules: &ReviewRules,
    (name, id): (&str, u64),
    wish: Wish,
) -> Result<Option<String>, PortError> {
    let teams_only = rules.approvers_only && wish == Wish::Approve;
    let mut not_told = None;
    if !teams_only {
        match forge.permission(name, id).await? {
            Some(right) if right >= Right::Write => return Ok(None),
            Some(_) => {}
            // Not every forge tells it to everybody who may write.
            None => {
                not_told = Some(
                    "Who may write to this repository is not told to this account: make it an administrator of the repository, and ask again"
                        .to_owned(),
                );
            }
        }
    }
    for team in &rules.approvers {
        match forge.membership(team, name, id).await? {
            Membership::Member => return Ok(None),
            Membership::NoMember => {}
            Membership::NotTold(why) => not_told = Some(capitalized(&why)),
        }
    }
    Ok(Some(
        not_told.unwrap_or_else(|| format!("{name}: only {} can ask for that", those(&rules.approvers, teams_only))),
    ))
}

fn those(teams: &[Team], teams_only: bool) -> String {
    let names: Vec<String> = teams.iter().map(Team::to_string).collect();
    let names = names.join(" or ");
    match (teams_only, names.as_str()) {
        (_, "") => "those who may write to this repository".to_owned(),
        (true, names) => format!("members of {names}"),
        (false, names) => format!("those who may write to this repository, and members of {names},"),
    }
}

fn capitalized(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_may_are_named() {
        let teams = ["acme/platform".parse().unwrap(), "@acme/on-call".parse().unwrap()];
        assert_eq!(those(&[], false), "those who may write to this repository");
        assert_eq!(those(&teams, true), "members of acme/platform or acme/on-call");
        assert!(those(&teams[..1], false).ends_with("repository, and members of acme/platform,"));
        for name in ["", "/", "a b/c", "a/../b", "a/b?c"] {
            assert!(name.parse::<Team>().is_err(), "{name}");
        }
    }
}
