//! Which approvals are asked for: what the settings, the operator and the revisions before said, taken together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::{Approval, ApprovalMode};

/// Several rules at once, of which each holds. By default nothing is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalRules {
    pub provision: ApprovalMode,
    pub disrupt: ApprovalMode,
    /// Whether the author of the revision may not approve.
    pub two_people: bool,
    /// Each as in the settings; empty: no removal of a pool is asked about.
    pub confirm_pool_removal_above: Vec<String>,
}

impl ApprovalRules {
    /// Rules that ask for all that either of the two asks for.
    pub fn and(&self, other: &Self) -> Self {
        let stricter = |one, other| match (one, other) {
            (ApprovalMode::Automatic, ApprovalMode::Automatic) => ApprovalMode::Automatic,
            _ => ApprovalMode::Manual,
        };
        let mut limits: Vec<String> = Vec::new();
        for limit in self.confirm_pool_removal_above.iter().chain(&other.confirm_pool_removal_above) {
            if !limits.iter().any(|known| is_at_most(known, limit)) {
                limits.retain(|known| !is_at_most(limit, known));
                limits.push(limit.clone());
            }
        }
        Self {
            provision: stricter(self.provision, other.provision),
            disrupt: stricter(self.disrupt, other.disrupt),
            two_people: self.two_people || other.two_people,
            confirm_pool_removal_above: limits,
        }
    }

    /// Whether these rules ask about everything that the other rules ask about.
    pub fn cover(&self, other: &Self) -> bool {
        self.loosened_from(other).is_empty()
    }

    /// What the other rules ask about, and these do not: `disrupt: manual becomes automatic`.
    pub fn loosened_from(&self, other: &Self) -> Vec<String> {
        let mut loosened = Vec::new();
        for (field, before, after) in
            [("provision", other.provision, self.provision), ("disrupt", other.disrupt, self.disrupt)]
        {
            if (before, after) == (ApprovalMode::Manual, ApprovalMode::Automatic) {
                loosened.push(format!("approval.{field}: manual becomes automatic"));
            }
        }
        if other.two_people && !self.two_people {
            loosened.push("approval.twoPeople: true becomes false".to_owned());
        }
        let limits = &self.confirm_pool_removal_above;
        let missing = |limit: &&String| !limits.iter().any(|own| is_at_most(own, limit));
        for limit in other.confirm_pool_removal_above.iter().filter(missing) {
            let becomes = if limits.is_empty() { "100%".to_owned() } else { limits.join(" and ") };
            loosened.push(format!("approval.confirmPoolRemovalAbove: {limit} becomes {becomes}"));
        }
        loosened
    }
}

impl From<&Approval> for ApprovalRules {
    fn from(approval: &Approval) -> Self {
        Self {
            provision: approval.provision,
            disrupt: approval.disrupt,
            two_people: approval.two_people,
            confirm_pool_removal_above: vec![approval.confirm_pool_removal_above.clone()],
        }
    }
}

/// Whether one limit, a count or a percentage, lets no more nodes go than the other, however many there are.
fn is_at_most(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim_end_matches('%').parse::<u64>().ok();
    let (one_number, other_number) = (number(one), number(other));
    if one_number == Some(0) || other == "100%" || one == other {
        return true;
    }
    one.ends_with('%') == other.ends_with('%') && one_number.zip(other_number).is_some_and(|(one, other)| one <= other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(limits: &[&str]) -> ApprovalRules {
        let confirm_pool_removal_above = limits.iter().map(|limit| (*limit).to_owned()).collect();
        ApprovalRules { confirm_pool_removal_above, ..ApprovalRules::default() }
    }

    fn manual() -> ApprovalRules {
        ApprovalRules { disrupt: ApprovalMode::Manual, two_people: true, ..ApprovalRules::default() }
    }

    #[test]
    fn the_stricter_of_two_holds() {
        let both = manual().and(&limits(&["50%"]));
        assert_eq!((both.provision, both.disrupt), (ApprovalMode::Automatic, ApprovalMode::Manual));
        assert!(both.two_people && both.cover(&manual()) && both.cover(&limits(&["50%"])));
        assert_eq!(limits(&["50%"]).and(&limits(&["20%"])).confirm_pool_removal_above, ["20%"]);
        assert_eq!(limits(&["50%"]).and(&limits(&["3"])).confirm_pool_removal_above, ["50%", "3"]);
        assert_eq!(limits(&["50%", "3"]).and(&limits(&["0"])).confirm_pool_removal_above, ["0"]);
    }

    #[test]
    fn what_is_looser_is_named() {
        assert!(ApprovalRules::default().cover(&ApprovalRules::default()));
        assert!(manual().cover(&ApprovalRules::default()) && limits(&["1"]).cover(&limits(&["100%"])));
        let loosened = ApprovalRules::default().loosened_from(&manual());
        assert_eq!(loosened, ["approval.disrupt: manual becomes automatic", "approval.twoPeople: true becomes false"]);
        let loosened = limits(&["60%"]).loosened_from(&limits(&["50%"]));
        assert_eq!(loosened, ["approval.confirmPoolRemovalAbove: 50% becomes 60%"]);
        // A count and a percentage can not be compared, since the number of nodes is not known.
        assert!(!limits(&["1"]).cover(&limits(&["50%"])) && !limits(&["1%"]).cover(&limits(&["5"])));
        assert!(!limits(&[]).cover(&limits(&["50%"])) && limits(&["0%"]).cover(&limits(&["5"])));
    }
}
