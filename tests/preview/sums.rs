//! What a reviewer adds up: nodes are counted as nodes, and what the causes cost is what the headline says.

use std::path::Path;

use serde_json::Value;

use crate::fleet::{Nodes, class, pool, snapshot};
use crate::laid_out::in_folder;
use crate::program::{NOW, cutlist};
use crate::{MERGE, cases};

/// The only target of the preview of a change of some documents in a cluster.
pub fn previewed(folder: &Path, base: &[Value], head: &[Value], cluster: &str, further: &[&str]) -> Value {
    let (code, target) = with_code(folder, base, head, cluster, further);
    assert_eq!(code, 0, "{target:#}");
    target
}

/// The same behind the exit code.
pub fn with_code(folder: &Path, base: &[Value], head: &[Value], cluster: &str, further: &[&str]) -> (i32, Value) {
    for (side, documents) in [("base", base), ("head", head)] {
        std::fs::create_dir_all(folder.join(side)).unwrap();
        for (number, document) in documents.iter().enumerate() {
            std::fs::write(folder.join(side).join(format!("{number}.yaml")), format!("{document:#}\n")).unwrap();
        }
    }
    std::fs::write(folder.join("cluster.json"), cluster).unwrap();
    in_folder(&folder.join("repository"), &folder.join("base"), &folder.join("head"));
    let arguments = ["--cluster", "blue=cluster.json", "--now", NOW, "-o", "json"];
    let ran = cutlist(folder, MERGE.into_iter().chain(arguments).chain(further.iter().copied()));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.transcript()));
    (ran.code, document["targets"][0].clone())
}

/// `+$0.0870/h` at the end of a text; 0 where there is none.
fn price(text: &str) -> f64 {
    let Some((before, amount)) = text.strip_suffix("/h").and_then(|text| text.rsplit_once('$')) else { return 0.0 };
    let amount: f64 = amount.replace(',', "").parse().unwrap();
    if before.ends_with('-') { -amount } else { amount }
}

/// The number before a word, such as 3 of `3 nodes removed` or `3 removed`.
fn number(headline: &str, word: &str) -> u64 {
    let parts = headline.split(';').next().unwrap().split(", ");
    let part = parts.filter(|part| !part.contains("no longer")).find(|part| part.split(' ').any(|it| it == word));
    part.and_then(|part| part.split(' ').next()?.replace(',', "").parse().ok()).unwrap_or(0)
}

/// What is bought for those that are replaced, where it is another number.
fn by(headline: &str) -> Option<u64> {
    headline.split(" by ").nth(1)?.split([',', ' ', ';']).next()?.parse().ok()
}

#[track_caller]
fn assert_adds_up(target: &Value) {
    let causes = target["causes"].as_array().unwrap();
    let sum: f64 = causes.iter().map(|cause| price(cause["text"].as_str().unwrap())).sum();
    let whole = target["figures"]["pricePerHourOfTheChange"].as_f64().unwrap();
    // Each is rounded to four digits.
    assert!((sum - whole).abs() < 0.0001 * (causes.len() + 1) as f64, "{sum} is not {whole}: {target:#}");
}

#[test]
fn the_causes_of_every_case_cost_what_its_headline_says() {
    let mut seen = 0;
    for case in cases() {
        let text = std::fs::read_to_string(case.join("expected.json")).unwrap();
        let preview: Value = serde_json::from_str(&text).unwrap();
        for target in preview["targets"].as_array().unwrap().iter().filter(|it| it["verdict"] == "changes") {
            assert_adds_up(target);
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

fn half_empty(pool: &'static str, count: usize) -> Nodes {
    Nodes { pool, instance_type: "m5.large", memory: "6903Mi", count, pod_millicores: 300, pods: 2 }
}

#[test]
fn a_move_of_many_nodes_counts_as_many_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let base = [class(), pool("a", &["m5"], "WhenEmpty")];
    let head = [class(), pool("a", &["m5"], "WhenEmptyOrUnderutilized")];
    let cluster = snapshot(&[half_empty("a", 9)], vec![]);
    let target = previewed(folder.path(), &base, &head, &cluster, &["--without-simulation"]);
    let (headline, figures) = (target["headline"].as_str().unwrap(), &target["figures"]);
    let figure = |name: &str| figures[name].as_u64().unwrap();
    // The base does nothing at all, so the whole plan is the change's.
    let (removed, replaced) = (number(headline, "removed"), number(headline, "replaced"));
    assert_eq!((removed, replaced), (figure("nodesRemoved"), figure("nodesReplaced")), "{headline}");
    assert_eq!(number(headline, "created"), figure("nodesCreated"), "{headline}");
    assert!(removed + replaced >= 5, "{headline}");
    let after =
        figure("nodesBefore") - removed - replaced + number(headline, "created") + by(headline).unwrap_or(replaced);
    assert_eq!(after, figure("nodesAfter"), "{headline}");
    let cause = target["causes"][0]["text"].as_str().unwrap();
    assert_eq!((number(cause.split("; ").nth(1).unwrap(), "removed"), by(cause)), (removed, by(headline)), "{cause}");
    assert_adds_up(&target);
}

/// The base saves money as well, with the same nodes: what the change does to them costs what is different.
#[test]
fn what_goes_without_the_change_as_well_is_not_counted() {
    let pools = |families: &[&str]| {
        [class(), pool("a", families, "WhenEmptyOrUnderutilized"), pool("b", &["m5"], "WhenEmptyOrUnderutilized")]
    };
    for families in [&["m6i"][..], &["m5", "c5"], &["r5"]] {
        let folder = tempfile::tempdir().unwrap();
        let cluster = snapshot(&[half_empty("a", 7), half_empty("b", 6)], vec![]);
        let target = previewed(folder.path(), &pools(&["m5"]), &pools(families), &cluster, &["--without-simulation"]);
        let headline = target["headline"].as_str().unwrap();
        let figures = &target["figures"];
        let all = figures["nodesRemoved"].as_u64().unwrap() + figures["nodesReplaced"].as_u64().unwrap();
        let counted = number(headline, "removed") + number(headline, "replaced");
        assert!(counted == all || counted < all && headline.contains("would happen anyway"), "{headline}");
        assert_eq!(target["causes"].as_array().unwrap().len(), 1, "{target:#}");
        assert_adds_up(&target);
        // The parts of the first screen's fold add up as well.
        let sections = target["markdown"]["sections"].as_array().unwrap();
        let sum = |title: &str| -> f64 {
            let section = sections.iter().find(|it| it["title"] == title);
            let lines = section.map_or("", |it| it["markdown"].as_str().unwrap()).lines();
            lines.filter_map(|line| line.strip_suffix("</summary>")).map(price).sum()
        };
        let whole = figures["pricePerHourOfTheChange"].as_f64().unwrap();
        let folded = sum("because of this change") - sum("no longer planned");
        assert!((folded - whole).abs() < 0.001, "{folded} is not {whole}: {target:#}");
    }
}

#[test]
fn several_causes_share_what_none_of_them_does_alone() {
    let folder = tempfile::tempdir().unwrap();
    let base =
        [class(), pool("a", &["m5"], "WhenEmpty"), pool("b", &["m5"], "WhenEmpty"), pool("c", &["m5"], "WhenEmpty")];
    let head = [
        class(),
        pool("a", &["m6i"], "WhenEmpty"),
        pool("b", &["r5"], "WhenEmptyOrUnderutilized"),
        pool("c", &["m5"], "WhenEmptyOrUnderutilized"),
    ];
    let cluster = snapshot(&[half_empty("a", 4), half_empty("b", 4), half_empty("c", 4)], vec![]);
    let target = previewed(folder.path(), &base, &head, &cluster, &["--without-simulation"]);
    assert!(target["causes"].as_array().unwrap().len() >= 3, "{target:#}");
    assert_adds_up(&target);
}
