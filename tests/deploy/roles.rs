//! The roles are what the table of calls says (`tests/generated.rs` writes them); here it is seen that `observe` observes.

use serde_json::Value;

use super::{documents, read};

/// Groups and resources that a controller may write in the mode `observe`.
const OWN: &[(&str, &str)] =
    &[("cutlist.dev", "nodeplans"), ("cutlist.dev", "nodeplans/status"), ("events.k8s.io", "events"), ("", "events")];

#[test]
fn observe_writes_nothing_but_its_own() {
    let rules = documents(&read("chart/rbac/observe.yaml")).remove(0);
    let mut reads = 0;
    for rule in rules.as_array().unwrap() {
        let writes = items(rule, "verbs").iter().any(|verb| !["get", "list", "watch"].contains(verb));
        for group in items(rule, "apiGroups") {
            for resource in items(rule, "resources") {
                assert!(!resource.contains('*') && !group.contains('*'), "{rule}");
                assert!(!writes || OWN.contains(&(group, resource)), "observe may write {resource} of {group:?}");
                reads += usize::from(!writes);
            }
        }
        assert!(!items(rule, "resources").contains(&"secrets"), "nothing here is for secrets");
    }
    assert!(reads > 20, "the rules are missing");
}

/// Chart and Kustomize base have the same rules.
#[test]
fn both_ways_give_the_same_roles() {
    let roles = documents(&read("kustomize/base/roles.yaml"));
    let role = |name: &str| roles.iter().find(|role| role["metadata"]["name"] == name).unwrap()["rules"].clone();
    let enforce = documents(&read("kustomize/enforce/role.yaml")).remove(0)["rules"].clone();
    for (file, rules) in
        [("observe", role("cutlist-observe")), ("leader", role("cutlist-leader")), ("enforce", enforce)]
    {
        let expected: Value = documents(&read(&format!("chart/rbac/{file}.yaml"))).remove(0);
        assert_eq!(rules, expected, "{file}");
    }
}

fn items<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule[field].as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}
