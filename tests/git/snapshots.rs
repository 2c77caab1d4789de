//! Snapshots that several clusters keep on one branch at the same moment.

use cutlist::adapters::git::SnapshotBranch;

use crate::servers::HttpServer;

const CLUSTERS: usize = 4;
const BRANCH: &str = "snapshots";

#[test]
fn those_of_several_clusters_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let bare = git2::Repository::init_bare(folder.path().join("server.git")).unwrap();
    bare.config().unwrap().set_bool("http.receivepack", true).unwrap();
    let server = HttpServer::start(folder.path());
    let path = folder.path().join("server.git").display().to_string();
    for repository in [server.url("server.git"), format!("file://{path}"), path] {
        std::thread::scope(|scope| {
            for number in 0..CLUSTERS {
                let (repository, branch) = (repository.clone(), BRANCH.to_owned());
                let to = SnapshotBranch { repository, branch, credentials_file: None };
                scope
                    .spawn(move || to.push(&format!("cluster-{number}"), "20260101T000000Z.json.gz", b"x", 2).unwrap());
            }
        });
        let mut branch = bare.find_reference(&format!("refs/heads/{BRANCH}")).unwrap();
        assert_eq!(branch.peel_to_tree().unwrap().len(), CLUSTERS, "{repository}");
        branch.delete().unwrap();
    }
}
