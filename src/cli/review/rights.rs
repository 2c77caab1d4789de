//! Who may command: those who may write to the repository, and the teams that the operator names.

use crate::adapters::forge::{ForgeError, HostedRepository, Right, Team};
use crate::cli::arguments::ReviewManner;

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Ask,
    Approve,
}

/// Why somebody may not do that; `None`: they may. Asked again each time, and teams every few minutes.
pub async fn refusal(
    forge: &HostedRepository,
    manner: &ReviewManner,
    (name, id): (&str, u64),
    wish: Wish,
) -> Result<Option<String>, ForgeError> {
    let teams_only = manner.approvers_only && wish == Wish::Approve;
    let mut not_told = None;
    if !teams_only {
        match forge.permission(name, id).await {
            Ok(right) if right >= Right::Write => return Ok(None),
            Ok(_) => {}
            // Not every forge tells it to everybody who may write.
            Err(error) if error.is_denied() => {
                not_told = Some(
                    "Who may write to this repository is not told to this account: make it an administrator of the repository, and ask again"
                        .to_owned(),
                );
            }
            Err(error) => return Err(error),
        }
    }
    for team in &manner.approvers {
        match forge.is_in_team(team, name, id).await {
            Ok(true) => return Ok(None),
            Ok(false) => {}
            Err(error @ ForgeError::TeamNotTold { .. }) => not_told = Some(capitalized(&error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(
        not_told.unwrap_or_else(|| format!("{name}: only {} can ask for that", those(&manner.approvers, teams_only))),
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
