//! Conditions of EC2NodeClasses that turn False: told once each, at the start too, beside the status that has them.

use std::collections::BTreeMap;

use crate::controller::events::Event;
use crate::ports::ClassFacts;

/// The reason of a condition that follows from others, which are told.
const FOLLOWS: &str = "DependenciesNotReady";

/// What was told. It may be lost, and is told again then.
#[derive(Debug, Default)]
pub struct ClassConditions {
    /// Reasons by class and condition.
    told: BTreeMap<(String, String), String>,
}

impl ClassConditions {
    /// What is to be told of all classes, by their names. One of which nothing could be found out stays as it was.
    pub fn turned<'f>(&mut self, classes: impl Iterator<Item = (&'f String, &'f ClassFacts)>) -> Vec<Event> {
        let before = std::mem::take(&mut self.told);
        let mut events = Vec::new();
        for (class, facts) in classes {
            for condition in &facts.conditions {
                let key = (class.clone(), condition.type_.clone());
                let told = before.get(&key);
                match condition.status {
                    Some(true) => {}
                    None => self.told.extend(told.map(|reason| (key, reason.clone()))),
                    Some(false) if condition.reason == FOLLOWS => {}
                    Some(false) => {
                        if told != Some(&condition.reason) {
                            events.push(Event::NodeClassNotReady {
                                node_class: class.clone(),
                                condition: condition.type_.clone(),
                                reason: condition.reason.clone(),
                                text: condition.message.clone(),
                            });
                        }
                        self.told.insert(key, condition.reason.clone());
                    }
                }
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ClassCondition;

    /// `Some(reason)` of a condition that is false.
    fn said(conditions: &mut ClassConditions, found: &[(&str, Option<bool>, &str)]) -> Vec<String> {
        let condition = |(type_, status, reason): &(&str, Option<bool>, &str)| ClassCondition {
            type_: (*type_).to_owned(),
            status: *status,
            reason: (*reason).to_owned(),
            message: String::new(),
        };
        let facts = ClassFacts { conditions: found.iter().map(condition).collect(), ..ClassFacts::default() };
        let text = |event: Event| match event {
            Event::NodeClassNotReady { node_class, condition, reason, .. } => {
                format!("{node_class} {condition} {reason}")
            }
            other => panic!("{other:?}"),
        };
        conditions.turned([(&"default".to_owned(), &facts)].into_iter()).into_iter().map(text).collect()
    }

    #[test]
    fn what_is_not_true_is_told_once_and_again_when_it_comes_back() {
        let mut conditions = ClassConditions::default();
        let broken = [("SubnetsReady", Some(false), "SubnetsNotFound"), ("ValidationSucceeded", Some(false), FOLLOWS)];
        let told = ["default SubnetsReady SubnetsNotFound"];
        assert_eq!(said(&mut conditions, &broken), told);
        assert!(said(&mut conditions, &broken).is_empty(), "once");
        assert!(said(&mut conditions, &[("SubnetsReady", None, "Throttled")]).is_empty());
        assert!(said(&mut conditions, &broken).is_empty(), "what is not known changes nothing");
        assert!(said(&mut conditions, &[("SubnetsReady", Some(true), "")]).is_empty());
        assert_eq!(said(&mut conditions, &broken), told);
        let other = [("SubnetsReady", Some(false), "AddressFamily")];
        assert_eq!(said(&mut conditions, &other), ["default SubnetsReady AddressFamily"]);
    }
}
