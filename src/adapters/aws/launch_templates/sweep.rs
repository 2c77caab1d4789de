//! Which launch templates may go. Deleting one at once when it is no longer needed races with launches that are under way (A#7941), and never
//! deleting them fills the account's quota (A#8686).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::NAME_PREFIX;

/// A template that is there, and what this process knows of its use. All moments are by the clock here: EC2's own may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownTemplate {
    pub id: String,
    pub name: String,
    /// When this process first saw it: one that another process has just made is as good as new.
    pub first_seen: Timestamp,
    /// When a launch last named it.
    pub last_used: Option<Timestamp>,
}

/// Those that may be deleted: made here by their name, in no launch that is under way, and neither seen for the first time nor used within
/// `unused_for`. By name.
pub fn unused<'t>(
    templates: &'t [KnownTemplate],
    in_flight: &BTreeSet<String>,
    unused_for: SignedDuration,
    now: Timestamp,
) -> Vec<&'t KnownTemplate> {
    let is_old = |moment: Timestamp| now.duration_since(moment) >= unused_for;
    let may_go = |template: &&KnownTemplate| {
        template.name.starts_with(NAME_PREFIX)
            && !in_flight.contains(&template.name)
            && is_old(template.last_used.map_or(template.first_seen, |used| used.max(template.first_seen)))
    };
    let mut unused: Vec<&KnownTemplate> = templates.iter().filter(may_go).collect();
    unused.sort_by(|one, other| one.name.cmp(&other.name));
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_used_for_a_while_goes() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        let template = |name: &str, first_seen: i64, last_used: Option<i64>| KnownTemplate {
            id: format!("lt-{name}"),
            name: name.to_owned(),
            first_seen: at(first_seen),
            last_used: last_used.map(at),
        };
        let templates = [
            template("cutlist.dev/used-lately", 0, Some(95)),
            template("cutlist.dev/old", 0, Some(70)),
            template("cutlist.dev/never-used", 0, None),
            template("cutlist.dev/in-flight", 0, None),
            template("cutlist.dev/of-another-process", 99, None),
            template("cutlist.dev/from-a-clock-ahead", 500, None),
            template("karpenter.k8s.aws/123", 0, None),
        ];
        let in_flight = BTreeSet::from(["cutlist.dev/in-flight".to_owned()]);
        let names = |now: i64| {
            let unused = unused(&templates, &in_flight, SignedDuration::from_mins(30), at(now));
            unused.into_iter().map(|template| template.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(100), ["cutlist.dev/never-used", "cutlist.dev/old"]);
        assert_eq!(names(99), ["cutlist.dev/never-used"], "29 minutes are not enough");
        assert_eq!(names(0), [""; 0]);
    }
}
