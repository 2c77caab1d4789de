//! What is left of plans whose objects are gone.

use cutlist::controller::events::Event;
use cutlist::core::inputs::{Inputs, Policy};
use cutlist::core::plan::Revision;
use cutlist::core::snapshot::Snapshot;
use cutlist::core::why::node::{Decided, why_node};

use crate::stage::{SETTINGS, Stage};

#[tokio::test(start_paused = true)]
async fn a_node_is_answered_for_when_its_plans_are_gone() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    let first = stage.snapshot().nodes[0].metadata.name.clone().unwrap();
    for _ in 0..20 {
        stage.scale(0);
        assert!(stage.settle().await);
        stage.scale(5);
        assert!(stage.settle().await);
    }
    let posted = stage.count(|event| matches!(event, Event::PlanPosted { .. }));
    let snapshot = stage.snapshot();
    let pages = snapshot.node_plans.iter().filter(|plan| plan.spec.plan.is_none()).count();
    assert!(posted > 30 && snapshot.node_plans.len() < 25 && pages == 1, "{posted}, {}", snapshot.node_plans.len());

    let known = Snapshot { node_plans: snapshot.node_plans, ..Snapshot::default() };
    let catalog = stage.world.with(|world| world.catalog().clone());
    let inputs = Inputs {
        revision: Revision::default(),
        cluster: "test",
        node_pools: &[],
        node_classes: &[],
        node_overlays: &[],
        capacity_buffers: &[],
        pod_templates: &[],
        disruption_budgets: &[],
        places: cutlist::core::plan::DefinitionPlaces::none(),
        snapshot: &known,
        catalog: &catalog,
        policy: Policy::default(),
        seed: 0,
        now: "2026-11-21T09:00:00Z".parse().unwrap(),
        notes: Vec::new(),
    };
    let why = why_node(&inputs, &first).unwrap();
    let decided: Vec<bool> = why
        .decisions
        .iter()
        .map(|decision| match &decision.decided {
            Decided::Created { begun, pods, .. } => *begun && pods.len() == 5,
            Decided::Removed { begun, exchange, .. } => *begun && exchange.saving_per_hour.dollars() > 0.0,
            Decided::Adopted { .. } | Decided::NeedsConfirmation | Decided::HeldBack => false,
        })
        .collect();
    assert_eq!(decided, [true, true], "{why:#?}");
    assert_eq!(why.decisions[0].revision.id, "revision-1");
    assert!(why.history > 10 && why.history_since.is_some());
    let text = cutlist::render::why::node(&why, cutlist::render::plan::Style::Plain);
    assert!(text.contains("is gone") && text.contains("steps of earlier plans since"), "{text}");
}

/// A policy keeps what was posted, for those who audit.
#[tokio::test(start_paused = true)]
async fn plans_are_carried_out_where_none_may_be_forgotten() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.fuse.forbid("nodeplans");
    for _ in 0..20 {
        stage.scale(5);
        assert!(stage.settle().await);
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
        stage.scale(0);
        assert!(stage.settle().await);
    }
    assert!(stage.snapshot().node_plans.len() > 25, "they are kept");
    let said = |event: &Event| matches!(event, Event::CallFailed { error } if error.contains("policy.example.com"));
    assert!(stage.count(said) > 0);
}
