//! What an approval is worth: of which plan, by whose word, under which rules; and what becomes of it when something comes between.

use cutlist::adapters::embedded::Post;
use cutlist::api::approval_rules::ApprovalRules;
use cutlist::api::keys;
use cutlist::api::node_plan::{APPROVED_BY, NodePlan, NodePlanPhase};
use cutlist::api::settings::ApprovalMode;
use cutlist::controller::MoveRefusal;
use cutlist::controller::events::Event;
use cutlist::core::plan::Plan;
use cutlist::core::snapshot::Snapshot;
use cutlist::core::snapshot::doubts::Unreadable;
use cutlist::ports::Cluster;
use serde_json::json;

use crate::stage::{ENVIRONMENT_CANARY, Fault, POOL, SETTINGS, Stage, set_canary};

fn with_approval(approval: &str) -> String {
    format!("{SETTINGS}  approval: {{ {approval} }}\n")
}

/// One whose plan to create a node waits.
async fn that_waits(approval: &str) -> Stage {
    let mut stage = Stage::new(&with_approval(approval));
    assert!(stage.settle().await);
    stage.scale(5);
    stage.run_for(20).await;
    assert_eq!((stage.waiting().len(), claims(&stage)), (1, 0));
    stage
}

fn claims(stage: &Stage) -> usize {
    stage.snapshot().node_claims.len()
}

fn object(stage: &Stage, plan: &str) -> NodePlan {
    let plans = stage.snapshot().node_plans;
    plans.iter().find(|object| object.spec.plan_id == plan).unwrap().clone()
}

/// As somebody who may write NodePlans does.
async fn change(stage: &Stage, plan: &str, change: impl Fn(&mut NodePlan)) {
    let mut object = object(stage, plan);
    change(&mut object);
    let cluster = stage.world.cluster();
    cluster.forget_plan(object.metadata.name.as_deref().unwrap(), "").await.unwrap();
    cluster.record_plan(&object).await.unwrap();
}

async fn approve(stage: &Stage, plan: &str, by: &str) {
    change(stage, plan, |object| {
        object.metadata.annotations.get_or_insert_default().insert(APPROVED_BY.to_owned(), by.to_owned());
    })
    .await;
}

fn last_waiting(stage: &Stage) -> String {
    stage.waiting().pop().unwrap()
}

fn refused(stage: &Stage, text: &str) -> usize {
    stage.count(|event| matches!(event, Event::ApprovalRefused { because, .. } if because.contains(text)))
}

fn superseded_by_revision(stage: &Stage) -> usize {
    stage.count(|event| matches!(event, Event::PlanSuperseded { refusal: MoveRefusal::OtherRevision, .. }))
}

#[tokio::test(start_paused = true)]
async fn who_approved_is_said_and_noted() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    approve(&stage, &plan, " ").await;
    stage.run_for(20).await;
    assert_eq!(claims(&stage), 0, "nobody is no approver");
    approve(&stage, &plan, "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    let said = |event: &Event| matches!(event, Event::Approved { by: Some(by), .. } if by == "ada");
    assert_eq!(stage.count(said), 1);
    assert_eq!(object(&stage, &plan).status.unwrap().phase, NodePlanPhase::Applied);
}

/// The case `approved-plan-of-the-old-revision`: before that one is there, and in the look in which it comes.
#[tokio::test(start_paused = true)]
async fn an_approval_waits_for_the_revision_that_is_being_fetched() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    stage.script.asks(true);
    approve(&stage, &plan, "ada").await;
    stage.run_for(20).await;
    assert_eq!(claims(&stage), 0, "another revision may be on its way");
    let small = POOL.replace("cpu: \"100\"", "cpu: \"50\"");
    let settings = with_approval("provision: manual");
    stage.script.commit("two", &[("pool.yaml", &small), ("cutlist.yaml", &settings)]);
    stage.script.asks(false);
    stage.run_for(20).await;
    assert_eq!((claims(&stage), superseded_by_revision(&stage)), (0, 1));
    let status = object(&stage, &plan).status.unwrap();
    assert_eq!((status.phase, status.message.as_str()), (NodePlanPhase::Superseded, "another revision is in force"));
    let next = last_waiting(&stage);
    assert_eq!(object(&stage, &next).spec.revision.id, "two");
    // The same, in one look.
    approve(&stage, &next, "ada").await;
    stage.script.commit("three", &[("pool.yaml", POOL), ("cutlist.yaml", &settings)]);
    stage.run_for(20).await;
    assert_eq!((claims(&stage), superseded_by_revision(&stage)), (0, 2));
    // Where nothing new was found, it counts.
    let last = last_waiting(&stage);
    stage.script.asks(true);
    approve(&stage, &last, "ada").await;
    stage.run_for(20).await;
    stage.script.asks(false);
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_refused_leaves_approvals_as_they_are() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    approve(&stage, &plan, "ada").await;
    stage.script.commit("broken", &[("pool.yaml", "kind: NodePool\n"), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionRefused { .. })), 1);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// Its name, to be changed by hand or by another version into something that is no `NodePlan` any more.
fn broken(stage: &Stage, plan: &str, installation: &str) -> Unreadable {
    let name = if plan.is_empty() { "older".to_owned() } else { object(stage, plan).metadata.name.unwrap() };
    let object = json!({
        "metadata": { "name": name, "labels": { keys::INSTALLATION: installation } },
        "status": { "phase": "WaitsForApproval", "movesBegun": "none" },
    });
    Unreadable::new("NodePlan", &object, "status.movesBegun: invalid type: string \"none\", expected a sequence")
}

#[tokio::test(start_paused = true)]
async fn a_waiting_plan_that_can_not_be_read_is_named_and_shown_once_more() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    let object_of_it = broken(&stage, &plan, "test");
    stage.world.with(|world| world.set_aside(object_of_it));
    approve(&stage, &plan, "ada").await;
    stage.run_for(30).await;
    assert_eq!(claims(&stage), 0, "nobody knows what was approved");
    let named = |event: &Event| matches!(event, Event::Doubted { doubts } if doubts.unreadable.iter().any(|it| it.why.starts_with("status.movesBegun")));
    assert!(stage.count(named) > 0);
    let next = last_waiting(&stage);
    assert_ne!(next, plan, "under another name");
    assert_eq!(object(&stage, &plan).status.unwrap().phase, NodePlanPhase::Superseded);
    // It holds nothing else up.
    approve(&stage, &next, "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    stage.scale(0);
    stage.run_for(300).await;
    assert_eq!(claims(&stage), 0);
}

/// A newer version wrote it, before somebody went back to this one.
#[tokio::test(start_paused = true)]
async fn a_plan_of_an_earlier_process_that_can_not_be_read_is_superseded_unless_it_is_anothers() {
    for (installation, phase) in [("test", "Superseded"), ("", "Superseded"), ("another", "WaitsForApproval")] {
        let mut stage = Stage::new(&with_approval("provision: manual"));
        let object = broken(&stage, "", installation);
        stage.world.with(|world| world.set_aside(object));
        stage.run_for(20).await;
        stage.scale(5);
        stage.run_for(20).await;
        assert_eq!(stage.waiting().len(), 1, "{installation}: plans are made and posted");
        let seen = stage.world.cluster().observe().await.unwrap();
        assert_eq!(seen.doubts.unreadable[0].phase, phase, "{installation}");
        let said = stage.count(|event| matches!(event, Event::Doubted { .. }));
        assert_eq!(said > 0, installation != "another", "{installation}: what is another's is no doubt");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_changed_is_not_what_was_approved() {
    for (field, tamper) in [
        ("spec.plan", (|object| object.spec.plan.as_mut().unwrap()["steps"] = json!([])) as fn(&mut NodePlan)),
        ("spec", |object| object.spec.nodes_created = 0),
        ("status.text", |object| object.status.as_mut().unwrap().text = "Nothing to do.\n".to_owned()),
        ("status", |object| object.status.as_mut().unwrap().message = "nothing waits".to_owned()),
    ] {
        let mut stage = that_waits("provision: manual").await;
        let plan = last_waiting(&stage);
        change(&stage, &plan, tamper).await;
        approve(&stage, &plan, "the-ceo").await;
        stage.run_for(30).await;
        assert_eq!((claims(&stage), refused(&stage, &format!("posted: {field}"))), (0, 1), "{field}");
        let next = last_waiting(&stage);
        assert_ne!(next, plan, "{field}: shown once more, under another name");
        assert_eq!(object(&stage, &plan).status.unwrap().phase, NodePlanPhase::Superseded, "{field}");
        approve(&stage, &next, "the-ceo").await;
        stage.run_for(60).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "{field}");
    }
}

/// Nobody could answer it, and it would wait for ever.
#[tokio::test(start_paused = true)]
async fn a_waiting_plan_that_somebody_deleted_is_shown_once_more() {
    let mut stage = that_waits("provision: manual").await;
    let name = object(&stage, &last_waiting(&stage)).metadata.name.unwrap();
    stage.world.cluster().forget_plan(&name, "").await.unwrap();
    stage.run_for(60).await;
    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// Of a process that has ended nothing is known but the object: it may be made by hand, or its approval refused before.
#[tokio::test(start_paused = true)]
async fn only_an_object_that_is_as_it_was_written_hands_its_approval_on() {
    for (number, tamper) in [
        (|object| object.spec.price_change = "by hand".to_owned()) as fn(&mut NodePlan),
        |object| object.spec.nodes_removed = 7,
        |object| {
            object.status.as_mut().unwrap().conditions.iter_mut().for_each(|it| it.reason = "Superseded".to_owned());
        },
        |object| {
            object.metadata.name = Some("bbbbbbbbbbbb".to_owned());
            object.spec.plan_id = "bbbbbbbbbbbbbbbb".to_owned();
        },
        |object| {
            let id = "bbbbbbbbbbbbbbbb";
            object.metadata.name = Some(id.chars().take(12).collect());
            object.spec.plan_id = id.to_owned();
            object.spec.plan.as_mut().unwrap()["id"] = json!(id);
        },
    ]
    .into_iter()
    .enumerate()
    {
        let mut stage = that_waits("provision: manual").await;
        change(&stage, &last_waiting(&stage), |object| {
            tamper(object);
            object.metadata.annotations.get_or_insert_default().insert(APPROVED_BY.to_owned(), "eve".to_owned());
        })
        .await;
        stage.restart();
        stage.run_for(60).await;
        // A plan of another number is not even alike.
        let refusals = usize::from(number < 4);
        assert_eq!((claims(&stage), refused(&stage, "not as it was written")), (0, refusals), "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_writes_numbers_its_own_way() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    change(&stage, &plan, |object| {
        let summary = object.spec.plan.as_mut().unwrap()["summary"].as_object_mut().unwrap();
        for value in summary.values_mut().filter(|value| value.is_u64()) {
            *value = json!(value.as_f64().unwrap());
        }
    })
    .await;
    approve(&stage, &plan, "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// The case `gate-is-the-committers`.
#[tokio::test(start_paused = true)]
async fn a_commit_that_asks_for_less_approval_is_approved_by_the_rules_before_it() {
    let mut stage = that_waits("provision: manual").await;
    stage.script.commit("loose", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    assert_eq!(claims(&stage), 0);
    // Not by another commit, nor by another process.
    stage.script.commit("looser", &[("pool.yaml", &POOL.replace("\"100\"", "\"90\"")), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    stage.restart();
    stage.run_for(60).await;
    assert_eq!(claims(&stage), 0);
    let plan = last_waiting(&stage);
    let shown = object(&stage, &plan);
    assert_eq!(shown.spec.approval.as_ref().unwrap().provision, ApprovalMode::Manual);
    assert_eq!(shown.spec.approval_becomes.as_ref().unwrap().provision, ApprovalMode::Automatic);
    let status = shown.status.unwrap();
    assert!(status.message.contains("approval.provision: manual becomes automatic when it is approved"), "{status:?}");
    assert!(status.text.contains("the revision asks for fewer approvals"), "{}", status.text);
    approve(&stage, &plan, "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    // From here on the new rules hold, also for a process that comes later.
    stage.scale(40);
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (40, 0));
    stage.restart();
    stage.scale(80);
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (80, 0));
}

/// Nor are they what an older one of ours is: given up, forgotten, or where rules are read.
#[tokio::test(start_paused = true)]
async fn plans_of_another_installation_are_nobodys_business() {
    let mut stage = that_waits("provision: manual").await;
    let plan = last_waiting(&stage);
    let mut theirs = object(&stage, &plan);
    theirs.metadata.name = Some("of-another".to_owned());
    let noted =
        theirs.metadata.labels.get_or_insert_default().insert(keys::INSTALLATION.to_owned(), "another".to_owned());
    assert_eq!(noted.as_deref(), Some("test"), "a plan says whose it is");
    theirs.spec.plan_id = "of-another".to_owned();
    theirs.spec.approval = Some(ApprovalRules::default());
    stage.run_for(5).await;
    stage.world.cluster().record_plan(&theirs).await.unwrap();
    stage.script.commit("loose", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.restart_at_what_comes();
    stage.run_for(60).await;
    assert_eq!(claims(&stage), 0, "the rules of another are not those that were in force");
    assert_ne!(object(&stage, &plan).status.unwrap().phase, NodePlanPhase::WaitsForApproval);
    assert_eq!(object(&stage, "of-another").status, theirs.status);
}

#[tokio::test(start_paused = true)]
async fn looser_rules_wait_where_nothing_else_does() {
    let mut stage = Stage::new(&with_approval("disrupt: manual, confirmPoolRemovalAbove: 10%"));
    assert!(stage.settle().await);
    stage.script.commit("loose", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    let rules = stage.events.borrow().iter().find_map(|event| match event {
        Event::WaitsForApproval { moves, rules, .. } if moves.is_empty() => Some(rules.clone()),
        _ => None,
    });
    let expected = ["approval.disrupt: manual becomes automatic", "approval.confirmPoolRemovalAbove: 10% becomes 50%"];
    assert_eq!(rules.unwrap(), expected);
    // What the rules in force let through goes on.
    stage.scale(5);
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    // Who thinks better of it needs nobody.
    let strict = with_approval("disrupt: manual, confirmPoolRemovalAbove: 5%");
    stage.script.commit("strict", &[("pool.yaml", POOL), ("cutlist.yaml", &strict)]);
    stage.run_for(60).await;
    assert_eq!(superseded_by_revision(&stage), 1);
    let plans = stage.snapshot().node_plans;
    let newest = plans.iter().rfind(|plan| plan.spec.revision.id == "strict").unwrap();
    let rules = newest.spec.approval.as_ref().unwrap();
    assert_eq!(
        (rules.disrupt, rules.confirm_pool_removal_above.as_slice()),
        (ApprovalMode::Manual, ["5%".to_owned()].as_slice())
    );
    assert_eq!(newest.spec.approval_becomes, None);
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_asks_for_no_commit_takes_back() {
    let floor = ApprovalRules { provision: ApprovalMode::Manual, ..ApprovalRules::default() };
    let mut stage = Stage::with_floor(SETTINGS, floor);
    assert!(stage.settle().await);
    stage.scale(5);
    stage.run_for(60).await;
    assert_eq!((claims(&stage), stage.waiting().len()), (0, 1), "the first revision has nothing to be looser than");
    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    stage.scale(40);
    stage.run_for(60).await;
    assert_eq!((claims(&stage), stage.waiting().len()), (1, 2), "an approval is for one plan");
}

#[tokio::test(start_paused = true)]
async fn the_author_of_a_commit_is_not_the_second_of_two_people() {
    let settings = with_approval("provision: manual, twoPeople: true");
    let mut stage = Stage::new(&settings);
    stage.script.authors(&["ada@example.com"]);
    stage.script.commit("by-ada", &[("pool.yaml", POOL), ("cutlist.yaml", &settings)]);
    assert!(stage.settle().await);
    // What she wrote is in the next one, too, where that can not be used.
    stage.script.authors(&["bob@example.com"]);
    stage.script.commit("broken", &[("pool.yaml", "kind: NodePool\n"), ("cutlist.yaml", &settings)]);
    stage.script.authors(&["cem@example.com"]);
    stage.script.commit("mended", &[("pool.yaml", &POOL.replace("\"100\"", "\"90\"")), ("cutlist.yaml", &settings)]);
    stage.run_for(20).await;
    stage.scale(5);
    stage.run_for(20).await;
    let plan = last_waiting(&stage);
    assert_eq!(object(&stage, &plan).spec.not_approved_by, ["bob@example.com", "cem@example.com"]);
    for author in ["bob@example.com", "oidc:Cem@example.com"] {
        approve(&stage, &plan, author).await;
        stage.run_for(30).await;
        assert_eq!(claims(&stage), 0, "{author}");
    }
    assert_eq!(refused(&stage, "an author of the revision"), 2, "each said once");
    approve(&stage, &plan, "ada@example.com").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// As with an artifact of Flux, or objects of the cluster.
#[tokio::test(start_paused = true)]
async fn where_nobody_says_who_wrote_it_nobody_is_the_second_of_two_people() {
    let mut stage = that_waits("provision: manual, twoPeople: true").await;
    let plan = last_waiting(&stage);
    assert!(object(&stage, &plan).spec.not_approved_by.is_empty());
    let message = object(&stage, &plan).status.unwrap().message;
    assert!(message.contains("nobody can approve it: twoPeople asks for somebody else"), "{message}");
    approve(&stage, &plan, "ada@example.com").await;
    stage.run_for(60).await;
    assert_eq!((refused(&stage, "does not say who wrote them"), claims(&stage)), (1, 0));
    // Nor does another leader take it.
    stage.restart();
    stage.run_for(60).await;
    assert_eq!(claims(&stage), 0);
}

#[tokio::test(start_paused = true)]
async fn an_approval_outlives_the_leader_it_was_given_to() {
    let mut stage = that_waits("provision: manual").await;
    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.restart();
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    let said = |event: &Event| matches!(event, Event::Approved { by: Some(by), .. } if by == "ada");
    assert_eq!(stage.count(said), 1);
    stage.assert_consistent("after another process took over");
}

/// What is hidden is in no plan, so nobody can tell whether the next process has the same value of it.
#[tokio::test(start_paused = true)]
async fn an_approval_is_not_carried_over_to_other_values_of_the_environment() {
    let settings = with_approval("provision: manual");
    let mut stage = Stage::new(&settings);
    let role = "  role: karpenterNodeRole-test\n";
    let joining = POOL.replacen(role, &format!("{role}  userData: join ${{CANARY}}\n"), 1);
    assert!(joining.contains("userData"));
    stage.script.commit("joining", &[("pool.yaml", &joining), ("cutlist.yaml", &settings)]);
    stage.run_for(120).await;
    stage.scale(5);
    stage.run_for(20).await;
    assert_eq!((stage.waiting().len(), claims(&stage)), (1, 0));
    let plan = object(&stage, &last_waiting(&stage)).spec.plan.unwrap();
    assert_eq!(plan["steps"][0]["launch"]["nodeClassVariables"], json!(["CANARY"]));

    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.restart();
    stage.run_for(60).await;
    assert_eq!((claims(&stage), refused(&stage, "shown nowhere: CANARY")), (0, 1));
    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// Who may read a plan could try which value gives its number.
#[tokio::test(start_paused = true)]
async fn the_number_of_a_plan_covers_nothing_that_is_hidden() {
    let settings = with_approval("provision: manual");
    let template = "  template:\n";
    let label = "    metadata:\n      labels:\n        example.com/key: ${CANARY}\n";
    let labelled = POOL.replacen(template, &format!("{template}{label}"), 1);
    assert!(labelled.contains("example.com/key"));
    for value in [ENVIRONMENT_CANARY, "another0value"] {
        set_canary(value);
        let mut stage = Stage::new(&settings);
        stage.script.commit("labelled", &[("pool.yaml", &labelled), ("cutlist.yaml", &settings)]);
        stage.run_for(120).await;
        stage.scale(5);
        stage.run_for(20).await;
        let plan = object(&stage, &last_waiting(&stage)).spec;
        let shown = plan.plan.unwrap();
        assert!(!shown.to_string().contains(value));
        // It can be told from what is shown, so that it says nothing more.
        let shown: Plan = serde_json::from_value(shown).unwrap();
        assert_eq!(shown.hash_without(|_| ()), plan.plan_id);
        if value == ENVIRONMENT_CANARY {
            // Nor is an approval of it one of what another process has as value.
            approve(&stage, &last_waiting(&stage), "ada").await;
            stage.restart();
            stage.run_for(60).await;
            assert_eq!((claims(&stage), refused(&stage, "shown nowhere: CANARY")), (0, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_next_leader_would_do_otherwise_asks_again() {
    let mut stage = that_waits("provision: manual").await;
    approve(&stage, &last_waiting(&stage), "ada").await;
    stage.scale(30);
    stage.restart();
    stage.run_for(60).await;
    assert_eq!((claims(&stage), stage.waiting().len()), (0, 2));
    // Nor is a text approved that is another plan's.
    let plan = last_waiting(&stage);
    change(&stage, &plan, |object| object.status.as_mut().unwrap().text = "Nothing to do.\n".to_owned()).await;
    approve(&stage, &plan, "ada").await;
    stage.restart();
    stage.run_for(60).await;
    assert_eq!((claims(&stage), refused(&stage, "status.text")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_approval_outlives_calls_that_fail() {
    for call in 0..6 {
        let mut stage = that_waits("provision: manual").await;
        approve(&stage, &last_waiting(&stage), "ada").await;
        stage.fuse.arm(stage.fuse.calls() + call, Fault::LostAnswer);
        stage.run_for(120).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "call {call}");
        assert_eq!(stage.waiting().len(), 1, "call {call}: nobody is asked twice");
        stage.assert_consistent(&format!("call {call}"));
    }
}

/// A plan that comes back after another one can be approved: its object is there.
#[tokio::test(start_paused = true)]
async fn a_plan_that_comes_back_is_shown_again() {
    let mut stage = that_waits("provision: manual").await;
    let first = last_waiting(&stage);
    stage.scale(0);
    stage.run_for(60).await;
    assert_eq!(object(&stage, &first).status.unwrap().phase, NodePlanPhase::Superseded);
    stage.scale(5);
    stage.run_for(60).await;
    let second = last_waiting(&stage);
    assert_ne!(first, second);
    approve(&stage, &second, "ada").await;
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
}

/// Whoever commits could else confirm the removal of a pool before anybody is asked about it.
#[tokio::test(start_paused = true)]
async fn a_commit_confirms_no_removal() {
    let confirmed = POOL.replacen(
        "  name: default\n",
        "  name: default\n  annotations: { cutlist.dev/removal-confirmed: 'yes' }\n",
        1,
    );
    let mut stage = Stage::of_four_nodes(&confirmed).await;
    let other = POOL.replacen("name: default", "name: other", 1).replacen(
        "    spec:\n",
        "    metadata: { labels: { generation: second } }\n    spec:\n",
        1,
    );
    stage.script.commit("other", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(600).await;
    assert_eq!((claims(&stage), stage.waiting().len()), (4, 1));
    let moved = stage
        .snapshot()
        .node_claims
        .iter()
        .filter(|claim| claim.metadata.labels.as_ref().unwrap()["karpenter.sh/nodepool"] == "other")
        .count();
    assert_eq!(moved, 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_back_is_not_followed() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.script.older(true);
    stage.script.commit("older", &[("pool.yaml", &POOL.replace("\"100\"", "\"1\"")), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(20).await;
    assert_eq!(stage.count(|event| matches!(event, Event::OlderRevisionHeld { .. })), 1);
    stage.scale(5);
    stage.run_for(60).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "the revision before is in force");
    // It comes back to what is in force: no news. A new one is used.
    stage.script.commit("revision-1", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(20).await;
    stage.script.older(false);
    stage.script.commit("newer", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(20).await;
    let pool = &stage.snapshot().node_pools[0];
    assert_eq!(pool.metadata.annotations.as_ref().unwrap()["cutlist.dev/revision"], "newer");
    assert_eq!(stage.count(|event| matches!(event, Event::OlderRevisionHeld { .. })), 1);
}

/// A mirror that is behind, or somebody between, when a process starts.
#[tokio::test(start_paused = true)]
async fn a_process_that_starts_is_not_led_back() {
    let mut stage = Stage::of_four_nodes(POOL).await;
    let before = stage.snapshot();
    stage.script.older(true);
    let other = POOL.replacen("name: default", "name: other", 1);
    stage.script.commit("older", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    stage.restart_at_what_comes();
    stage.run_for(3600).await;
    let held = |event: &Event| matches!(event, Event::OlderRevisionHeld { in_force: None, .. });
    assert_eq!(stage.count(held), 1);
    let after = stage.snapshot();
    let pods = |snapshot: &Snapshot| snapshot.pods.iter().map(|pod| pod.metadata.uid.clone()).collect::<Vec<_>>();
    assert!(after.node_pools == before.node_pools && pods(&after) == pods(&before) && after.nodes.len() == 4);
    let posted = stage.forge.posts().into_iter().any(|post| {
        matches!(post, Post::Failure { markdown, .. }
        if markdown.contains("none is in force until a newer one comes") && markdown.contains("--allow-older-revision"))
    });
    assert!(posted, "said where people review");
    stage.script.older(false);
    stage.script.commit("newer", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.scale(5);
    stage.run_for(120).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (9, 0));
    let pool = &stage.snapshot().node_pools[0];
    assert_eq!(pool.metadata.annotations.as_ref().unwrap()["cutlist.dev/revision"], "newer");
}
