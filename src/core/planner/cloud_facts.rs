//! Everything that EC2 says and a plan shows, in its order.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::PricesAsked;
use crate::disrupt::drift;
use crate::inputs::{FactsOfFile, Inputs};
use crate::model::time::duration_text;
use crate::plan::{CloudFact, CloudFactCode, Step};
use crate::snapshot::nodes::Machine;
use cutlist_api::cloud_facts::DeniedPermission;

use super::{addresses, quotas};

/// Beyond this it is said that what EC2 has may be other by now.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(24);
/// The same of prices: of those on demand, which are asked for twice a day, and of those of spot, twice an hour.
const ON_DEMAND_AGE_MAX: SignedDuration = SignedDuration::from_hours(48);
const SPOT_AGE_MAX: SignedDuration = SignedDuration::from_hours(2);

/// Those of the account first: how old they are, and what could not be asked.
pub fn facts(inputs: &Inputs<'_>, machines: &[Machine<'_>], steps: &[Step]) -> Vec<CloudFact> {
    let mut facts = drift::facts(inputs, machines, steps);
    facts.extend(addresses::facts(inputs, steps));
    facts.extend(quotas::facts(inputs, steps));
    facts.extend(inputs.policy.denied.iter().map(permission));
    facts.extend(inputs.catalog.prices_asked.iter().flat_map(|asked| of_prices(asked, inputs.now)));
    facts.extend(inputs.policy.facts.iter().flat_map(|file| of_file(file, inputs.now)));
    facts.sort();
    facts
}

/// Of the account, and of no plan in particular.
fn fact(subject: &str, code: CloudFactCode, text: String) -> CloudFact {
    CloudFact {
        node_class: String::new(),
        subject: subject.to_owned(),
        code,
        before: Vec::new(),
        after: None,
        nodes: 0,
        replaces: BTreeMap::new(),
        used: false,
        text,
        definition: None,
    }
}

fn permission(denied: &DeniedPermission) -> CloudFact {
    let DeniedPermission { action, text, needed_for } = denied;
    fact(&format!("permission {action}"), CloudFactCode::PermissionDenied, format!("{text}; it is for: {needed_for}"))
}

/// Where the catalog says it to the minute. A day stands in the plan anyway.
fn of_prices(asked: &PricesAsked, now: Timestamp) -> Vec<CloudFact> {
    let both = [
        ("prices on demand", &asked.on_demand, ON_DEMAND_AGE_MAX, "a list that changes by the week"),
        ("prices of spot", &asked.spot, SPOT_AGE_MAX, "they change all day"),
    ];
    let one = |(subject, at, most, why): (&str, &Option<String>, SignedDuration, &str)| {
        let at: Timestamp = at.as_ref()?.parse().ok()?;
        let age = now.duration_since(at);
        let (code, text) = match () {
            () if age.is_negative() => {
                (CloudFactCode::PricesOld, format!("of {at}, which is still to come: is a clock wrong?"))
            }
            () if age > most => (CloudFactCode::PricesOld, format!("of {at}, {} old: {why}", text_of(age))),
            () => (CloudFactCode::PricesAsked, format!("of {at}, {} old", text_of(age))),
        };
        Some(fact(subject, code, text))
    };
    both.into_iter().filter_map(one).collect()
}

fn of_file(file: &FactsOfFile, now: Timestamp) -> Vec<CloudFact> {
    let age = now.duration_since(file.taken_at);
    let (code, text) = match () {
        () if age.is_negative() => {
            (CloudFactCode::FactsOld, format!("of {}, which is still to come: is a clock wrong?", file.taken_at))
        }
        () if age > AGE_MAX => (
            CloudFactCode::FactsOld,
            format!("of {}, {} old: images, subnets and addresses may be others by now", file.taken_at, text_of(age)),
        ),
        () => (CloudFactCode::FactsOfFile, format!("of {}, {} old", file.taken_at, text_of(age))),
    };
    let mut facts = vec![fact("facts", code, text)];
    facts.extend(file.not_known.iter().map(|why| fact("not known", CloudFactCode::NotKnown, why.clone())));
    facts
}

fn text_of(age: SignedDuration) -> String {
    duration_text(age.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_prices_is_said_and_old_ones_are_a_warning() {
        let asked = PricesAsked {
            on_demand: Some("2026-11-20T01:00:00Z".to_owned()),
            spot: Some("2026-11-20T08:40:00Z".to_owned()),
        };
        let said = |asked: &PricesAsked, now: &str| -> Vec<String> {
            let facts = of_prices(asked, now.parse().unwrap());
            facts.into_iter().map(|it| format!("{:?} {} {}", it.code, it.subject, it.text)).collect()
        };
        let fresh = [
            "PricesAsked prices on demand of 2026-11-20T01:00:00Z, 8h old",
            "PricesAsked prices of spot of 2026-11-20T08:40:00Z, 20m old",
        ];
        assert_eq!(said(&asked, "2026-11-20T09:00:00Z"), fresh);
        let old = said(&asked, "2026-11-23T09:00:00Z");
        assert!(old.iter().all(|it| it.starts_with("PricesOld")), "{old:?}");
        assert!(said(&asked, "2026-11-19T09:00:00Z")[0].contains("is a clock wrong"));
        // One that is not live is said elsewhere, and words that are no time say nothing.
        let spot = PricesAsked { on_demand: None, spot: Some("soon".to_owned()) };
        assert!(said(&spot, "2026-11-20T09:00:00Z").is_empty());
    }

    #[test]
    fn the_age_of_a_file_is_said_and_beyond_a_day_it_is_a_warning() {
        let file = FactsOfFile {
            taken_at: "2026-11-20T09:00:00Z".parse().unwrap(),
            not_known: vec!["ssm:GetParameters denied".to_owned()],
        };
        let at = |now: &str| of_file(&file, now.parse().unwrap());
        let fresh = at("2026-11-20T10:30:00Z");
        assert_eq!(fresh[0].code, CloudFactCode::FactsOfFile);
        assert!(fresh[0].text.starts_with("of 2026-11-20T09:00:00Z, 90m old"), "{}", fresh[0].text);
        assert_eq!((fresh[1].code, fresh[1].text.as_str()), (CloudFactCode::NotKnown, "ssm:GetParameters denied"));
        assert_eq!(at("2026-11-21T10:30:00Z")[0].code, CloudFactCode::FactsOld);
        assert_eq!(at("2026-11-19T10:30:00Z")[0].code, CloudFactCode::FactsOld);
    }
}
