//! Which claim gets which instance.

use std::collections::{BTreeMap, BTreeSet};

/// Instances and claims of one launch, put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Instance by UID of its claim.
    pub instances: BTreeMap<String, String>,
    /// UIDs of claims that get none.
    pub without: BTreeSet<String>,
    /// Instances that no claim of the launch is left for. They are orphans: to be named before they are ended.
    pub surplus: BTreeSet<String>,
}

/// Gives instances to claims: those that are written on claims already (`assigned`) stay where they are, and of the rest the first id goes to
/// the first UID. Whoever does it again, with the same instances and claims, comes to the same. `claims`: UIDs of those without an instance.
pub fn assign<'a>(
    instances: impl IntoIterator<Item = &'a str>,
    assigned: impl IntoIterator<Item = &'a str>,
    claims: impl IntoIterator<Item = &'a str>,
) -> Assignment {
    let mut free: BTreeSet<&str> = instances.into_iter().collect();
    for instance in assigned {
        free.remove(instance);
    }
    let mut free = free.into_iter();
    let mut assignment = Assignment::default();
    for uid in claims.into_iter().collect::<BTreeSet<_>>() {
        match free.next() {
            Some(instance) => drop(assignment.instances.insert(uid.to_owned(), instance.to_owned())),
            None => drop(assignment.without.insert(uid.to_owned())),
        }
    }
    assignment.surplus = free.map(str::to_owned).collect();
    assignment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(assignment: &Assignment) -> Vec<(&str, &str)> {
        assignment.instances.iter().map(|(uid, instance)| (uid.as_str(), instance.as_str())).collect()
    }

    #[test]
    fn the_first_instance_goes_to_the_first_claim() {
        let found = assign(["i-9", "i-1"], [], ["b", "a", "c"]);
        assert_eq!(pairs(&found), [("a", "i-1"), ("b", "i-9")]);
        assert_eq!(found.without, BTreeSet::from(["c".to_owned()]));
        assert_eq!(assign(["i-1", "i-9", "i-1"], [], ["c", "b", "a"]), found, "whatever order they come in");
    }

    #[test]
    fn what_is_written_on_a_claim_stays() {
        let found = assign(["i-1", "i-2", "i-3"], ["i-2", "i-8"], ["b"]);
        assert_eq!(pairs(&found), [("b", "i-1")]);
        assert_eq!(found.surplus, BTreeSet::from(["i-3".to_owned()]));
        assert_eq!(assign([], [], []), Assignment::default());
    }

    /// However a launch is interrupted, each claim ends with one instance, and each instance with one claim; and where the claims were written in
    /// their order, or not at all, with the same one.
    #[test]
    fn interrupted_launches_end_with_one_instance_each() {
        let instances = ["i-1", "i-2", "i-3"];
        let whole = assign(instances, [], ["a", "b", "c"]);
        for written in ["a", "b", "c"] {
            let has = whole.instances[written].as_str();
            let rest: Vec<&str> = ["a", "b", "c"].into_iter().filter(|uid| *uid != written).collect();
            let mut after = assign(instances, [has], rest);
            after.instances.insert(written.to_owned(), has.to_owned());
            assert_eq!(after, whole, "{written} was written before the crash");
        }
    }
}
