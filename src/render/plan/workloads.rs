//! Pods by workload, for display: five pods of one Deployment are `inflate x5`.
//!
//! A plan names pods only; the workload is read off the suffixes that Kubernetes' controllers give.
//! Source of the alphabet and lengths: `k8s.io/apimachinery/pkg/util/rand`, and the name generators of the controllers.

use std::collections::BTreeMap;

use crate::core::plan::buffer_of;
use crate::render::terminal::clean;

/// The letters of generated suffixes: no vowels, so that no words come out, and no digits that look like letters.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// Characters of the suffix of a generated name.
const POD_SUFFIX_LENGTH: usize = 5;

/// `inflate x5`, `shop/web`, most pods first, then by name. The namespace is left out where it is `default`.
pub fn by_workload<'a>(pods: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for pod in pods {
        *counts.entry(workload(pod)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    counts
        .into_iter()
        .map(|(name, count)| if count == 1 { clean(&name) } else { format!("{} x{count}", clean(&name)) })
        .collect()
}

/// The workload of a pod `namespace/name`, or the buffer that keeps its room.
fn workload(pod: &str) -> String {
    if let Some(buffer) = buffer_of(pod) {
        return format!("buffer {buffer}");
    }
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    let workload = strip(name);
    if namespace == "default" { workload.to_owned() } else { format!("{namespace}/{workload}") }
}

fn strip(name: &str) -> &str {
    let Some((rest, last)) = split(name) else { return name };
    // Five characters of that alphabet may all be digits; behind the hash of a template they are no ordinal.
    let behind_hash = split(rest).is_some_and(|(_, hash)| is_template_hash(hash));
    if is_number(last) && !(behind_hash && last.len() == POD_SUFFIX_LENGTH && is_generated(last)) {
        // StatefulSet: web-0
        return rest;
    }
    if last.len() != POD_SUFFIX_LENGTH || !is_generated(last) {
        return name;
    }
    // DaemonSet, Job, ReplicaSet: one suffix. Deployment: the hash of the template before it. CronJob: the minute.
    // Indexed Job: the index.
    match split(rest) {
        Some((workload, hash)) if is_template_hash(hash) => workload,
        Some((workload, minute_or_index)) if is_number(minute_or_index) => workload,
        _ => rest,
    }
}

fn is_template_hash(part: &str) -> bool {
    (6..=10).contains(&part.len()) && is_generated(part)
}

fn split(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('-').filter(|(rest, last)| !rest.is_empty() && !last.is_empty())
}

fn is_generated(part: &str) -> bool {
    part.chars().all(|character| ALPHABET.contains(character))
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_what_each_controller_adds() {
        let cases = [
            ("default/inflate-6f5f6c9d4b-2zqxv", "inflate"),
            ("default/inflate-6f5f6c9d4b-24685", "inflate"),
            ("shop/web-0", "shop/web"),
            ("shop/web-12", "shop/web"),
            ("kube-system/aws-node-x7k2m", "kube-system/aws-node"),
            ("batch/report-29384756-b5x2t", "batch/report"),
            ("batch/index-3-b5x2t", "batch/index"),
            ("default/nginx", "nginx"),
            ("default/my-nginx", "my-nginx"),
            ("default/coredns-proxy", "coredns-proxy"),
            ("default/-0", "-0"),
            ("default/web-", "web-"),
            ("nothing", "nothing"),
            ("a/", "a/"),
        ];
        for (pod, expected) in cases {
            assert_eq!(workload(pod), expected, "{pod}");
        }
    }

    #[test]
    fn most_pods_first_then_by_name() {
        let pods = ["default/b-0", "default/a-0", "default/c-0", "default/c-1", "other/c-0"];
        assert_eq!(by_workload(pods), ["c x2", "a", "b", "other/c"]);
    }
}
