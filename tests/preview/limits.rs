//! However much there is to say, a document can be posted, and what is in it is closed.

use cutlist::api::preview::{
    Preview, PreviewMarkdown, PreviewRevision, PreviewSection, PreviewSignatures, PreviewTarget, PreviewVerdict,
};
use cutlist::render::plan::markdown::CHARACTERS_MAX;
use cutlist::render::preview::markdown;

use crate::laid_out::laid_out;
use crate::{preview, root};

/// Fences and `<details>` that are open at the end, and mentions that a forge would see.
fn is_closed(text: &str) -> bool {
    let fences = text.lines().filter(|line| line.starts_with("```")).count();
    fences % 2 == 0 && text.matches("<details>").count() == text.matches("</details>").count()
}

#[test]
fn every_document_is_closed_and_mentions_nobody() {
    for case in crate::cases() {
        let read = |file: &str| std::fs::read_to_string(case.join(file)).unwrap();
        let text = read("expected.md");
        assert!(is_closed(&text), "{text}");
        assert!(!text.contains('\u{fffd}'), "what keeps names from being mentioned was taken for hostile: {text}");
        // A bracket behind a backslash closes no link.
        let shown = text.replace("\\]", "");
        for hostile in ["@everyone", "<img", "](http", "#1 "] {
            assert!(!shown.contains(hostile), "{hostile} in {text}");
        }
        let json: Preview = serde_json::from_str(&read("expected.json")).unwrap();
        for target in &json.targets {
            let PreviewMarkdown { summary, sections } = &target.markdown;
            assert!(summary.chars().count() <= 4_000 && is_closed(summary), "{summary}");
            for PreviewSection { markdown, shorter, title } in sections {
                let lengths: Vec<usize> = [markdown].into_iter().chain(shorter).map(String::len).collect();
                assert!(lengths.is_sorted_by(|one, next| one > next), "{title}: {lengths:?}");
                assert!([markdown].into_iter().chain(shorter).all(|text| is_closed(text)), "{title}");
            }
        }
    }
}

/// From one cluster to many, with sections of any length.
#[test]
fn a_document_is_never_too_long() {
    for (clusters, characters) in [(1, 100), (1, 30_000), (3, 30_000), (50, 3_000), (400, 500), (3_000, 100)] {
        let section = |title: &str| PreviewSection {
            title: title.to_owned(),
            markdown: format!("\n<details><summary>x</summary>\n\n{}\n</details>\n", "é".repeat(characters)),
            shorter: vec![format!("\n{}\n", "é".repeat(characters / 10))],
        };
        let target = |number: usize| PreviewTarget {
            cluster: format!("cluster-{number:04}"),
            verdict: PreviewVerdict::Changes,
            headline: "1 node created".to_owned(),
            markdown: PreviewMarkdown {
                summary: "**1 node created**\n".to_owned(),
                sections: vec![section("a"), section("b"), section("c")],
            },
            ..PreviewTarget::default()
        };
        let preview = Preview { targets: (0..clusters).map(target).collect(), ..Preview::default() };
        let text = markdown(&preview);
        assert!(text.chars().count() <= CHARACTERS_MAX && is_closed(&text), "{clusters} of {characters}");
        assert!(text.contains("1 node created"), "{clusters} of {characters}");
        assert_eq!(text.contains("Shortened"), clusters * characters * 3 > CHARACTERS_MAX - 1_000 || clusters == 3_000);
    }
}

/// A cluster of which there is much to say takes no room from the others.
#[test]
fn the_cluster_that_is_too_long_is_the_one_that_is_shortened() {
    let target = |cluster: &str, characters: usize| {
        let section = |number: usize| PreviewSection {
            title: number.to_string(),
            markdown: format!("\n- {cluster} {number}: {}\n", "x".repeat(characters)),
            shorter: vec![format!("\n- {cluster} {number} in short\n")],
        };
        let (summary, sections) = (format!("**{cluster}**\n"), (0..5).map(section).collect());
        PreviewTarget {
            cluster: cluster.to_owned(),
            verdict: PreviewVerdict::Changes,
            markdown: PreviewMarkdown { summary, sections },
            ..PreviewTarget::default()
        }
    };
    let targets = vec![target("a", 100), target("b", 20_000), target("c", 100)];
    let text = markdown(&Preview { targets, ..Preview::default() });
    assert!(text.chars().count() <= CHARACTERS_MAX, "{}", text.chars().count());
    for kept in ["- a 4: xxx", "- c 4: xxx", "- b 0: xxx"] {
        assert!(text.contains(kept), "{kept}");
    }
    assert!(text.contains("- b 3 in short") && !text.contains("- b 4"), "its last section goes first");
}

/// Of many clusters the table and the document show those first of which a reader must know.
#[test]
fn of_too_many_clusters_the_worst_are_shown() {
    let target = |number: usize| PreviewTarget {
        cluster: format!("cluster-{number:04}"),
        verdict: if number == 2_999 { PreviewVerdict::Invalid } else { PreviewVerdict::Untouched },
        headline: if number == 2_999 { "can not be used" } else { "nothing changed" }.to_owned(),
        markdown: PreviewMarkdown { summary: format!("**{number}**\n"), sections: Vec::new() },
        ..PreviewTarget::default()
    };
    let text = markdown(&Preview { targets: (0..3_000).map(target).collect(), ..Preview::default() });
    assert!(text.contains("<code>cluster-2999</code> | invalid | can not be used |"), "{text}");
    assert!(text.contains("**2999**") && text.contains("clusters left out for want of room"), "{text}");
}

/// What others name may be of any length: paths, messages, branches, commits.
#[test]
fn a_document_is_not_too_long_by_what_others_name() {
    for (clusters, text) in [(1, "@"), (60, "x"), (100, "&"), (400, "\"")] {
        let long = text.repeat(5_000);
        let target = |number: usize| PreviewTarget {
            cluster: format!("cluster-{number:04}-{long}"),
            environment: long.clone(),
            verdict: PreviewVerdict::Invalid,
            headline: format!("can not be used: {long}"),
            ..PreviewTarget::default()
        };
        let unsigned = vec![long.clone(); 100];
        let preview = Preview {
            head: PreviewRevision { id: "a".repeat(40), reference: long.clone() },
            signatures: Some(PreviewSignatures { unsigned, further: 7 }),
            targets: (0..clusters).map(target).collect(),
            ..Preview::default()
        };
        let text = markdown(&preview);
        assert!(text.chars().count() <= CHARACTERS_MAX && is_closed(&text), "{clusters}: {}", text.chars().count());
        assert!(text.contains("and 87 more"), "commits: {text}");
        assert!(clusters < 400 || text.contains(" clusters left out for want of room"), "{clusters}");
    }
}

/// Thousands of nodes that go.
#[test]
fn a_huge_difference_is_told_in_one_document() {
    let folder = laid_out(&root().join("a-change"));
    let cluster = folder.path().join("clusters/blue.yaml");
    let text = std::fs::read_to_string(&cluster).unwrap();
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let is_of =
        |document: &&&str, kinds: &[&str]| kinds.iter().any(|kind| document.contains(&format!("\nkind: {kind}\n")));
    let of_node: Vec<&&str> = documents.iter().filter(|it| is_of(it, &["Node", "NodeClaim"])).collect();
    let mut all: Vec<String> = documents.iter().map(|it| (*it).to_owned()).collect();
    for number in 0..600 {
        let copy = |document: &&&str| {
            document
                .replace("ip-10-0-1-10", &format!("ip-10-1-{}-{}", number / 200, number % 200))
                .replace("default-lz6hf", &format!("default-n{number:04}"))
                .replace("i-0bc39f69c7c364b70", &format!("i-0{number:016}"))
                .lines()
                .filter(|line| !line.trim_start().starts_with("uid:"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        all.extend(of_node.iter().map(copy));
    }
    std::fs::write(&cluster, all.join("\n---\n")).unwrap();
    let further = ["-o", "markdown", "--without-simulation"];
    let ran = preview(folder.path(), &further);
    let text = ran.stdout;
    assert!(
        text.chars().count() <= CHARACTERS_MAX && is_closed(&text) && text.contains("no longer allows"),
        "{}{text}",
        ran.stderr
    );
}
