//! Each folder of `tests/render` holds a plan and what is shown for it: `expected.txt` on a terminal, `expected.md` in a review.
//! `UPDATE=1 cargo test --test render` rewrites what is expected; read the difference before it is committed.

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the cases are files, and UPDATE is how they are rewritten")]
mod render {
    use std::path::{Path, PathBuf};

    use cutlist::core::plan::{Placement, Plan, Risk, RiskCode, Step};
    use cutlist::render::plan::{Style, json, markdown, text};
    use unicode_width::UnicodeWidthStr;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/render")
    }

    fn load(case: &str) -> Plan {
        let text = std::fs::read_to_string(folder().join(case).join("plan.json")).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{case}: {error}"))
    }

    fn cases() -> Vec<(String, Plan)> {
        let mut names: Vec<String> = std::fs::read_dir(folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut cases: Vec<(String, Plan)> = names
            .into_iter()
            .map(|name| {
                let plan = if folder().join(&name).join("plan.json").exists() { load(&name) } else { huge() };
                (name, plan)
            })
            .collect();
        assert!(cases.len() > 10, "the cases are missing");
        cases.sort_by(|left, right| left.0.cmp(&right.0));
        cases
    }

    /// A thousand steps on made-up nodes: too many to keep as a file, and too many to show one by one.
    fn huge() -> Plan {
        let mut plan = load("mixed");
        let replaced = load("replace");
        let (create, remove) = (plan.steps[0].clone(), plan.steps[1].clone());
        plan.steps.clear();
        for number in 0..400_u32 {
            let zone = ["a", "b", "c"][number as usize % 3];
            let size = ["xlarge", "2xlarge", "4xlarge", "8xlarge"][number as usize % 4];
            let mut step = Step {
                move_number: number,
                node_claim: format!("default-c{number:04}"),
                instance_type: format!("c7a.{size}"),
                zone: format!("ap-northeast-2{zone}"),
                ..create.clone()
            };
            step.pods = (0..5_u32).map(|pod| format!("default/inflate-{}", number * 5 + pod)).collect();
            plan.steps.push(step);
        }
        for number in 400..700_u32 {
            let mut step = Step {
                move_number: number,
                node_claim: format!("default-e{number:04}"),
                zone: format!("ap-northeast-2{}", ["a", "b"][number as usize % 2]),
                ..remove.clone()
            };
            step.reason.text = format!("Empty for {number}s (consolidateAfter 30s)");
            plan.steps.push(step);
        }
        for number in 700..800_u32 {
            for (index, step) in replaced.steps.iter().filter(|step| step.move_number == 1).enumerate() {
                let name = format!("{}-r{number}{index}", step.node_pool);
                plan.steps.push(Step { move_number: number, node_claim: name, ..step.clone() });
            }
        }
        plan.summary.nodes_created = 400;
        plan.summary.nodes_replaced = 200;
        plan.summary.nodes_removed = 300;
        plan.summary.pods_placed = 2000;
        plan.summary.nodes_before = 5000;
        plan.summary.nodes_after = 5000;
        plan
    }

    /// Compares with the file, or rewrites it.
    fn check(case: &str, file: &str, found: &str) -> Result<(), String> {
        let path = folder().join(case).join(file);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, found).unwrap();
            return Ok(());
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        if expected == found {
            return Ok(());
        }
        let line = expected.lines().zip(found.lines()).take_while(|(expected, found)| expected == found).count();
        let at = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
        Err(format!("{case}/{file}, line {}:\n  expected {}\n  found    {}", line + 1, at(&expected), at(found)))
    }

    fn report(differences: Vec<String>) {
        assert!(differences.is_empty(), "{}\nUPDATE=1 rewrites the files", differences.join("\n"));
    }

    #[test]
    fn text_is_as_expected() {
        report(
            cases()
                .iter()
                .filter_map(|(case, plan)| check(case, "expected.txt", &text(plan, Style::Plain)).err())
                .collect(),
        );
    }

    #[test]
    fn markdown_is_as_expected() {
        report(cases().iter().filter_map(|(case, plan)| check(case, "expected.md", &markdown(plan)).err()).collect());
    }

    #[test]
    fn comments_fit_and_close_what_they_open() {
        let mut cases = cases();
        cases.push(("too many nodes".to_owned(), many_pools(40, 200)));
        cases.push(("too many pools".to_owned(), many_pools(3_000, 1)));
        cases.push(("all of it".to_owned(), many_pools(3_000, 3)));
        for (case, plan) in cases {
            let text = markdown(&plan);
            assert!(text.chars().count() <= 65_536 && text.len() <= 200_000, "{case}: {} bytes", text.len());
            assert!(text.starts_with("<!-- cutlist:plan:v1 id="), "{case}");
            for tag in ["details", "summary", "code", "sub", "b"] {
                let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
                assert_eq!(text.matches(&open).count(), text.matches(&close).count(), "{case}: {tag}");
            }
            let head: Vec<&str> = text.lines().take(2).collect();
            for line in head {
                assert!(
                    line.starts_with("<!-- cutlist:") && line.find("-->") == Some(line.len() - 3),
                    "{case}: {line}"
                );
            }
            let fences = text.lines().filter(|line| line.starts_with("```")).count();
            assert_eq!(fences % 2, 0, "{case}");
            let screen = text.lines().position(|line| line.starts_with("<details>")).unwrap_or(0);
            assert!(screen <= 25, "{case}: the first screen has {screen} lines");
        }
    }

    /// Steps of many pools, in names as long as Kubernetes allows.
    fn many_pools(pools: u32, steps: u32) -> Plan {
        let mut plan = load("mixed");
        let create = plan.steps[0].clone();
        plan.steps = (0..pools * steps)
            .map(|number| Step {
                move_number: number,
                node_pool: format!("{:063}", number % pools),
                node_claim: format!("{number:063}"),
                ..create.clone()
            })
            .collect();
        plan
    }

    /// What is too long is cut, and what is short stays whole.
    #[test]
    fn lists_are_cut_one_after_the_other() {
        let mut plan = load("mixed");
        let name = |kind: &str, number: usize| format!("{kind}{number:02}-{}", "e".repeat(220));
        plan.placements.clear();
        for node in 0..30 {
            for pod in 0..=node {
                plan.placements.push(Placement { pod: format!("shop/{}", name("p", pod)), node: name("n", node) });
            }
        }
        let risk = |number: usize| Risk {
            code: RiskCode::NoPodDisruptionBudget,
            subject: format!("shop/ReplicaSet/api-{number}"),
            text: "2 of 2 replicas move".to_owned(),
        };
        plan.risks = (0..3).map(risk).collect();
        let text = markdown(&plan);
        assert!(text.chars().count() <= 65_536, "{}", text.chars().count());
        assert!(text.contains("```diff") && text.contains("| NoPodDisruptionBudget | 3 |"), "{text}");
        assert!(text.contains("- 30 pods on <code>n29") && !text.contains("<code>n20"), "most pods first: {text}");
        assert!(text.contains("- and 25 more nodes") && text.contains("Shortened to fit"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        for (case, plan) in cases() {
            for line in text(&plan, Style::Plain).lines() {
                assert!(line.width() <= 100, "{case}: {} columns: {line}", line.width());
                assert_eq!(line.trim_end(), line, "{case}: spaces at the end of a line");
            }
        }
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        for (case, plan) in cases() {
            let coloured = text(&plan, Style::Coloured);
            assert!(coloured.contains("\u{1b}["), "{case}");
            assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), text(&plan, Style::Plain), "{case}");
        }
    }

    #[test]
    fn a_thousand_steps_stay_readable() {
        assert!(text(&huge(), Style::Plain).lines().count() < 200);
    }

    #[test]
    fn json_is_the_plan_and_nothing_else() {
        for (case, plan) in cases() {
            let text = json(&plan).unwrap();
            assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan, "{case}");
            if let Ok(written) = std::fs::read_to_string(folder().join(&case).join("plan.json")) {
                assert_eq!(text, written, "{case}: fields in the order in which they are declared");
            }
        }
    }
}
