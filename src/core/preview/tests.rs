//! Plans side by side.

use proptest::prelude::*;

use super::*;
use crate::plan::{
    DefinitionPlace, HeldBack, Note, NoteCode, Pending, PendingReason, Reason, ReasonCode, Risk, RiskCode, Step, kind,
};

fn plan() -> Plan {
    let plan = serde_json::json!({
        "version": 1, "id": "", "revision": {"id": "a", "reference": "main"}, "cluster": "blue",
        "generatedFor": "2026-11-20T09:00:00Z", "catalogDate": "2026-07-06", "seed": 0, "packing": "cheapest",
        "steps": [], "placements": [], "pending": [], "heldBack": [], "budgets": [], "notes": [],
        "summary": {
            "nodesBefore": 0, "nodesAfter": 0, "nodesCreated": 0, "nodesReplaced": 0, "nodesRemoved": 0,
            "pricePerHourBefore": 0.0, "pricePerHourAfter": 0.0, "podsPlaced": 0, "podsPending": 0, "podsDisrupted": 0,
            "candidates": 0, "candidatesExamined": 0
        }
    });
    serde_json::from_value(plan).unwrap()
}

fn removal(node: &str) -> Step {
    let step = serde_json::json!({
        "kind": "remove", "move": 1, "nodePool": "default", "nodeClaim": node, "node": node, "instanceType": "m7i.large",
        "zone": "us-east-1a", "capacityType": "on-demand", "pricePerHour": 0.1, "pods": ["shop/a", "shop/b"],
        "reason": {"code": "Empty", "text": "5s"}, "preconditions": [], "allocatable": {}, "requested": {}
    });
    serde_json::from_value(step).unwrap()
}

#[test]
fn lines_that_move_make_no_other_plan() {
    let at = |line| Some(DefinitionPlace { file: "pools.yaml".to_owned(), line });
    let moved = |line| {
        let held = HeldBack {
            node: "b".to_owned(),
            code: ReasonCode::BudgetExhausted,
            text: String::new(),
            kind: Vec::new(),
            budget: None,
            definition: at(line),
        };
        let note = Note::new(NoteCode::RolloutHalted, "a").about_pool("a").at(at(line));
        let reason =
            PendingReason { definition: at(line), ..PendingReason::new("a", ReasonCode::LimitReached, String::new()) };
        let waiting = Pending { pods: vec![], reasons: vec![reason], smallest_change: None, changes: vec![] };
        let steps = vec![Step { definition: at(line), ..removal("a") }];
        Plan { steps, held_back: vec![held], notes: vec![note], pending: vec![waiting], ..plan() }
    };
    let with_kinds = |mut plan: Plan| {
        plan.held_back[0].kind = kind(["NodePool", "a", "Nodes"]);
        plan.pending[0].reasons[0].kind.clear();
        plan.steps[0].reason.kind = kind(["NodeClassDrift"]);
        plan
    };
    assert_eq!(with_kinds(moved(3)).content_hash(), moved(3).content_hash(), "plans of older versions have none");
    assert_ne!(moved(3), moved(4));
    assert_eq!(moved(3).content_hash(), moved(4).content_hash());
    assert_eq!(digest(&moved(3)), digest(&moved(4)));
}

#[test]
fn the_digest_is_of_what_is_decided() {
    let plan = Plan { steps: vec![removal("a")], ..plan() };
    let same = |change: fn(&mut Plan)| {
        let mut other = plan.clone();
        change(&mut other);
        digest(&other) == digest(&plan)
    };
    assert!(same(|plan| plan.generated_for = "2026-11-21T09:00:00Z".to_owned()));
    assert!(same(|plan| plan.revision.id = "b".to_owned()));
    assert!(same(|plan| plan.steps[0].reason.text = "9s".to_owned()));
    assert!(same(|plan| plan.steps[0].also_in_base = Some(true)));
    assert!(same(|plan| plan.catalog_date = "2026-08-01".to_owned()));
    assert!(!same(|plan| plan.cluster = "green".to_owned()));
    assert!(!same(|plan| plan.steps[0].reason = Reason::new(ReasonCode::Drifted, String::new())));
    assert!(!same(|plan| plan.steps[0].pods.truncate(1)));
    assert!(!same(|plan| plan.steps.push(removal("b"))));
    assert!(!same(|plan| {
        plan.risks.push(Risk { code: RiskCode::DataLost, subject: "a".to_owned(), text: String::new() });
    }));
}

#[test]
fn the_digest_is_of_what_is_launched() {
    let launch = serde_json::json!({
        "nodeClaim": {
            "metadata": { "labels": { "a": "1", "b": "2" } },
            "spec": { "expireAfter": "720h", "nodeClassRef": { "group": "karpenter.k8s.aws", "name": "default" } },
        },
        "nodeClassHash": "aa",
        "alternatives": [],
    });
    let image = serde_json::json!({
        "nodeClass": "default", "subject": "image amd64", "code": "ImageUnchanged", "after": "ami-1", "used": true, "text": "",
    });
    let create = Step { launch: serde_json::from_value(launch).unwrap(), ..creation("default", 0.1) };
    let plan = Plan { steps: vec![create], cloud_facts: vec![serde_json::from_value(image).unwrap()], ..plan() };
    let same = |change: &dyn Fn(&mut Plan)| {
        let mut other = plan.clone();
        change(&mut other);
        digest(&other) == digest(&plan)
    };
    let claim = |plan: &mut Plan, field: &str, value: serde_json::Value| {
        let launch = plan.steps[0].launch.as_mut().unwrap();
        *launch.node_claim.pointer_mut(field).unwrap() = value;
    };
    assert!(!same(&|plan| plan.steps[0].launch.as_mut().unwrap().node_class_hash = Some("ab".to_owned())));
    assert!(!same(&|plan| plan.steps[0].launch.as_mut().unwrap().node_class_hash = None));
    assert!(!same(&|plan| claim(plan, "/spec/expireAfter", "Never".into())));
    assert!(!same(&|plan| claim(plan, "/spec/nodeClassRef/name", "other".into())));
    assert!(!same(&|plan| claim(plan, "/metadata/labels/a", "3".into())));
    assert!(!same(&|plan| plan.cloud_facts[0].after = Some("ami-2".to_owned())));
    assert!(same(&|plan| plan.cloud_facts[0].text = "said otherwise".to_owned()));
    assert!(same(&|plan| claim(plan, "/metadata/labels", serde_json::json!({ "b": "2", "a": "1" }))));
}

#[test]
fn what_was_so_anyway_is_apart() {
    let group = |pods: &[&str]| Pending {
        pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
        reasons: Vec::new(),
        smallest_change: None,
        changes: Vec::new(),
    };
    let head = Plan { pending: vec![group(&["shop/a", "shop/b"]), group(&["shop/c"])], ..plan() };
    let base = Plan { pending: vec![group(&["shop/b", "shop/c"])], ..plan() };
    let apart = pending(&head, Some(&base));
    assert_eq!(apart.caused, [group(&["shop/a"])]);
    assert_eq!(apart.anyway, [group(&["shop/b"]), group(&["shop/c"])]);
    let counts = apart::counts_of_pending(&head, Some(&base));
    assert_eq!(counts.iter().map(|it| (it.count, it.anyway)).collect::<Vec<_>>(), [(3, 2)]);
    assert!(has_effect(&head, &base) && !has_effect(&head, &head));
}

#[test]
fn a_node_that_goes_for_another_reason_is_a_difference() {
    let because = |code, text: &str| Step { reason: Reason::new(code, text.to_owned()), ..removal("a") };
    let with = |step: Step| Plan { steps: vec![step], ..plan() };
    let drifted = |word: &str, text: &str| {
        let reason = Reason { kind: kind([word]), ..Reason::new(ReasonCode::Drifted, text.to_owned()) };
        Step { reason, ..removal("a") }
    };
    let base = with(because(ReasonCode::Empty, "5s"));
    let of_class = with(drifted("NodeClassDrift", "EC2NodeClass a has changed"));
    for (head, base, expected) in [
        (drifted("NodeClassDrift", "a"), &base, Some(("Empty", "NodeClassDrift"))),
        (because(ReasonCode::Expired, "1h"), &base, Some(("Empty", "Expired"))),
        (drifted("NodePoolDrifted", "a"), &of_class, Some(("NodeClassDrift", "NodePoolDrifted"))),
        (drifted("NodeClassDrift", "NodePoolDrifted: said otherwise"), &of_class, None),
        (because(ReasonCode::Empty, "9s"), &base, None),
        (Step { node_claim: "b".to_owned(), ..because(ReasonCode::Expired, "1h") }, &base, None),
    ] {
        let head = crate::plan::compare(with(head), base);
        let other = other_reasons(&head, base);
        let expected = expected.map(|(before, now)| ((before.to_owned(), now.to_owned()), 1));
        assert_eq!(other, expected.into_iter().collect());
        let is_of_this_node = head.steps[0].node_claim == "a";
        assert_eq!(has_effect(&head, base), !other.is_empty() || !is_of_this_node);
    }
}

fn creation(pool: &str, price: f64) -> Step {
    Step {
        kind: StepKind::Create,
        node: None,
        node_pool: pool.to_owned(),
        price_per_hour: HourlyPrice::from_dollars(price).unwrap(),
        ..removal(pool)
    }
}

#[test]
fn what_the_base_does_as_well_is_not_the_changes() {
    let mut head = Plan { steps: vec![removal("a"), removal("b"), creation("new", 0.3)], ..plan() };
    head.steps[0].also_in_base = Some(true);
    let effect = Effect::of(caused_steps(&head), &[creation("old", 0.1)]);
    assert_eq!(effect.nodes, NodeCounts { replaced: 1, replacements: 1, ..NodeCounts::default() });
    assert_eq!(effect.taken_away, NodeCounts { created: 1, ..NodeCounts::default() });
    assert_eq!(effect.pods_moved, 2);
    assert_eq!(steps_anyway(&head).len(), 1);
    assert!((effect.price_per_hour.dollars() - 0.1).abs() < 1e-9);
}

/// Half of a replacement is nothing that either plan does: neither what it costs nor why is true of it.
#[test]
fn a_replacement_that_the_base_makes_in_another_way_is_a_whole() {
    let base = with_summary(vec![creation("batch", 0.2), removal("general-2"), removal("batch-4")]);
    let head = with_summary(vec![creation("general", 0.1), removal("general-2")]);
    let head = crate::plan::compare(head, &base);
    assert_eq!((caused_steps(&head).count(), steps_taken_away(&head)), (2, base.steps.as_slice()));
    assert!(steps_anyway(&head).is_empty() && happens_anyway(&head));
    let effect = Effect::of_change(&head);
    assert_eq!(effect.nodes, NodeCounts { replaced: 1, replacements: 1, ..NodeCounts::default() });
    assert_eq!(effect.taken_away, NodeCounts { replaced: 2, replacements: 1, ..NodeCounts::default() });
    assert_eq!(effect.going_anyway, 1);
    // It is the same in whatever order its steps stand.
    let mut turned = base.clone();
    turned.steps.reverse();
    let same = crate::plan::compare(turned, &base);
    assert_eq!((steps_anyway(&same).len(), steps_taken_away(&same)), (3, [].as_slice()));
    // Nodes for which nothing is bought go each by itself.
    let base = with_summary(vec![removal("a"), removal("b")]);
    let head = crate::plan::compare(with_summary(vec![removal("a"), removal("c")]), &base);
    assert_eq!((steps_anyway(&head).len(), steps_taken_away(&head).len()), (1, 1));
    assert_eq!((Effect::of_change(&head).nodes.removed, Effect::of_change(&head).going_anyway), (1, 0));
}

/// Steps by what they are, their moves, and which node or kind of node.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..4_u8, 1..5_u32, 0..6_u8).prop_map(|(kind, number, which)| {
        let price = f64::from(which + 1) / 10.0;
        let step = match kind {
            0 => creation(&format!("pool-{which}"), price),
            1 => Step { kind: StepKind::Hold, ..removal(&format!("node-{which}")) },
            2 => Step { kind: StepKind::Adopt, ..removal(&format!("node-{which}")) },
            _ => removal(&format!("node-{which}")),
        };
        Step { move_number: number, ..step }
    });
    proptest::collection::vec(step, 0..12).prop_map(|mut steps| {
        let mut gone = BTreeSet::new();
        steps.retain(|step| step.kind == StepKind::Create || gone.insert(step.node.clone()));
        steps
    })
}

/// As the planner has it: what is there, what comes, and what goes.
fn with_summary(steps: Vec<Step>) -> Plan {
    let mut plan = Plan { steps, ..plan() };
    plan.summary.price_per_hour_before = HourlyPrice::from_dollars(5.0).unwrap();
    plan.summary.price_per_hour_after = plan.summary.price_per_hour_before + price(&plan.steps);
    plan
}

proptest! {
    #[test]
    fn caused_less_taken_away_is_what_the_change_costs(head in steps(), base in steps()) {
        let (head, base) = (with_summary(head), with_summary(base));
        let head = crate::plan::compare(head, &base);
        let effect = Effect::of(caused_steps(&head), steps_taken_away(&head));
        let changes_costs = head.summary.price_per_hour_after - base.summary.price_per_hour_after;
        prop_assert_eq!(effect.price_per_hour, changes_costs);
        prop_assert_eq!(Effect::of_change(&head).price_per_hour, changes_costs);
        let of_kind = |kind| caused_steps(&head).filter(|step| step.kind == kind).count();
        prop_assert_eq!(effect.nodes.removed + effect.nodes.replaced, of_kind(StepKind::Remove));
        prop_assert_eq!(effect.nodes.created + effect.nodes.replacements, of_kind(StepKind::Create));
    }
}
