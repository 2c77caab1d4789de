//! A file of definitions that can not be read any more: what was applied from it is not gone, it is out of sight.

use cutlist::api::source::{SourceFile, Standing};
use cutlist::controller::events::Event;
use cutlist::core::plan::NoteCode;

use crate::stage::{POOL, SETTINGS, Stage};

const EXTRA: &str = "pools/extra.yaml";

/// A second pool, for pods that ask for it.
fn extra() -> String {
    let pool = POOL.split("---").find(|document| document.contains("kind: NodePool")).unwrap();
    pool.replacen("name: default", "name: extra", 1)
}

fn not_read(path: &str, standing: Standing) -> SourceFile {
    SourceFile { path: path.to_owned(), content: Vec::new(), standing }
}

/// Two pools, one with four nodes: the other one's files are what the test is about.
async fn with_two_pools(path: &str) -> Stage {
    let mut stage = Stage::new(SETTINGS);
    let (default, extra) = (POOL.replacen("name: default", "name: other", 1), extra());
    let default = default.replace("cpu: \"100\"", "cpu: \"0\"");
    stage.script.commit("two", &[("pool.yaml", &default), (path, &extra), ("cutlist.yaml", SETTINGS)]);
    stage.world.with(|world| world.load(crate::stage::apart(4)));
    assert!(stage.settle().await);
    let pools: Vec<_> = stage.snapshot().node_pools.iter().filter_map(|pool| pool.metadata.name.clone()).collect();
    assert_eq!((pools, stage.snapshot().nodes.len()), (vec!["extra".to_owned(), "other".to_owned()], 4));
    stage.events.borrow_mut().clear();
    stage
}

fn pools(stage: &Stage) -> usize {
    stage.snapshot().node_pools.len()
}

fn removals(stage: &Stage) -> usize {
    stage.count(|event| {
        matches!(
            event,
            Event::DefinitionPruned { .. }
                | Event::DisruptingNodes { .. }
                | Event::TerminatingNode { .. }
                | Event::EvictedPod { .. }
        )
    })
}

/// A slip in the kind or the group makes another object of it, and deletes nothing: no API server takes it for one.
#[tokio::test(start_paused = true)]
async fn a_pool_whose_kind_is_misspelt_stays_with_its_nodes() {
    for (written, slip) in [
        ("kind: NodePool", "kind: Nodepool"),
        ("apiVersion: karpenter.sh/v1", "apiVersion: karpenter/v1"),
        ("apiVersion: karpenter.sh/v1", "apiVersion: karpenter.sh/v2"),
        ("apiVersion: karpenter.sh/v1", "apiVersion: apps/v1"),
        ("kind: NodePool\n", ""),
        // What another project calls so.
        ("apiVersion: karpenter.sh/v1", "apiVersion: nodes.example.com/v1"),
    ] {
        let mut stage = with_two_pools(EXTRA).await;
        let rest = POOL.replacen("name: default", "name: other", 1);
        let extra = extra();
        assert!(extra.contains(written), "{extra}");
        let changed = extra.replacen(written, slip, 1);
        stage.script.commit("slip", &[("pool.yaml", &rest), (EXTRA, &changed), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(1500).await;
        assert_eq!((pools(&stage), stage.snapshot().nodes.len(), removals(&stage)), (2, 4, 0), "{slip}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_file_becomes_a_link_stays_with_its_nodes() {
    let ways = [
        (EXTRA, Standing::LinkNotFollowed),
        ("pools", Standing::LinkNotFollowed),
        ("pools", Standing::Submodule),
        // Nobody would take that for definitions by its name.
        ("team.a", Standing::LinkNotFollowed),
    ];
    for (path, standing) in ways {
        let file = if path == "team.a" { "team.a/extra.yaml" } else { EXTRA };
        let mut stage = with_two_pools(file).await;
        let rest = POOL.replacen("name: default", "name: other", 1);
        let more = vec![not_read(path, standing)];
        stage.script.commit_with("linked", &[("pool.yaml", &rest), ("cutlist.yaml", SETTINGS)], more);
        // Also for a process that comes later.
        for _ in 0..2 {
            stage.run_for(1500).await;
            assert_eq!((pools(&stage), stage.snapshot().nodes.len(), removals(&stage)), (2, 4, 0), "{path}");
            stage.restart();
        }
        let said = |event: &Event| {
            matches!(event, Event::Doubted { doubts }
                if doubts.unreadable.iter().any(|it| it.object() == "NodePool extra" && it.why.contains(path)))
        };
        assert!(stage.count(said) > 40, "{path}: said while it lasts");
        let shown = |event: &Event| {
            matches!(event, Event::PlanPosted { plan, .. }
                if plan.notes.iter().any(|note| note.code == NoteCode::ObjectUnreadable && note.text.contains("NodePool extra")))
        };
        assert!(stage.count(shown) > 0, "{path}: shown");
        // The link is removed: now it is gone.
        stage.script.commit("gone", &[("pool.yaml", &rest), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(1500).await;
        assert_eq!(pools(&stage), 1, "{path}: what left Git goes");
        assert_eq!(stage.world.with(|world| world.pod_counts()), (4, 0), "{path}");
    }
}

/// A pointer of Git LFS, and what is encrypted, stand for the file.
#[tokio::test(start_paused = true)]
async fn a_pool_whose_file_holds_no_object_any_more_stays_with_its_nodes() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    for text in [
        pointer,
        "$ANSIBLE_VAULT;1.1;AES256\n62313365396662343061\n",
        "-----BEGIN PGP MESSAGE-----\n\nhQEM\n",
        "a: b\n",
    ] {
        let mut stage = with_two_pools(EXTRA).await;
        let rest = POOL.replacen("name: default", "name: other", 1);
        stage.script.commit("stands in", &[("pool.yaml", &rest), (EXTRA, text), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(1500).await;
        assert_eq!((pools(&stage), stage.snapshot().nodes.len(), removals(&stage)), (2, 4, 0), "{text}");
        // Without a document nothing stands for anything.
        stage.script.commit("gone", &[("pool.yaml", &rest), (EXTRA, "# nothing\n"), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(1500).await;
        assert_eq!(pools(&stage), 1, "{text}");
    }
}

/// A link that leads nowhere for years is no reason to keep what was defined elsewhere.
#[tokio::test(start_paused = true)]
async fn what_was_defined_elsewhere_goes() {
    let mut stage = with_two_pools(EXTRA).await;
    let rest = POOL.replacen("name: default", "name: other", 1);
    for path in ["docs", "pools-of-old", "pools/extra.yaml.d"] {
        let more = vec![not_read(path, Standing::LinkNotFollowed)];
        stage.script.commit_with(path, &[("pool.yaml", &rest), ("cutlist.yaml", SETTINGS)], more);
    }
    stage.run_for(1500).await;
    assert_eq!(pools(&stage), 1);
}

/// What is asked about, and what is left out, is in the settings.
#[tokio::test(start_paused = true)]
async fn settings_that_are_a_link_are_no_settings() {
    let mut stage = with_two_pools(EXTRA).await;
    let more = vec![not_read("cutlist.yaml", Standing::LinkNotFollowed)];
    stage.script.commit_with("linked", &[("pool.yaml", POOL)], more);
    stage.run_for(3600).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RevisionRefused { .. })), 1);
    assert_eq!((pools(&stage), removals(&stage)), (2, 0));
}

const KUSTOMIZATION: &str = "resources:\n- pool.yaml\n- https://github.com/acme/pools//extra?ref=v1\n";

/// What is taken from elsewhere is not read, and may be what is in no file any more.
#[tokio::test(start_paused = true)]
async fn a_pool_that_moves_to_another_repository_stays_with_its_nodes() {
    let rest = POOL.replacen("name: default", "name: other", 1);
    let own = [("pool.yaml", rest.as_str()), ("cutlist.yaml", SETTINGS)];
    let with = [own[0], own[1], ("kustomization.yaml", KUSTOMIZATION)];
    let ways = [(&with[..], Vec::new()), (&own[..], vec![not_read("shared", Standing::Submodule)])];
    for (files, more) in ways {
        let mut stage = with_two_pools(EXTRA).await;
        stage.script.commit_with("moved", files, more.clone());
        // Also for a process that comes later, and after another commit.
        for message in ["again", "and again"] {
            stage.run_for(1500).await;
            assert_eq!((pools(&stage), stage.snapshot().nodes.len(), removals(&stage)), (2, 4, 0), "{message}");
            stage.restart();
            stage.run_for(1500).await;
            assert_eq!((pools(&stage), removals(&stage)), (2, 0), "{message}");
            let noted: Vec<(&str, &str)> = files.iter().copied().chain([("notes.yaml", message)]).collect();
            stage.script.commit_with(message, &noted, more.clone());
        }
        stage.script.commit("gone", &own);
        stage.run_for(1500).await;
        assert_eq!(pools(&stage), 1, "what left Git goes");
    }
}

/// A submodule that was there all the time brings nothing new.
#[tokio::test(start_paused = true)]
async fn what_is_removed_beside_an_old_submodule_goes() {
    let mut stage = with_two_pools(EXTRA).await;
    let (rest, extra) = (POOL.replacen("name: default", "name: other", 1), extra());
    let own = [("pool.yaml", rest.as_str()), ("cutlist.yaml", SETTINGS), (EXTRA, extra.as_str())];
    stage.script.commit_with("beside", &own, vec![not_read("shared", Standing::Submodule)]);
    stage.run_for(600).await;
    assert_eq!(pools(&stage), 2);
    stage.script.commit_with("without", &own[..2], vec![not_read("shared", Standing::Submodule)]);
    stage.run_for(1500).await;
    assert_eq!(pools(&stage), 1);
}
