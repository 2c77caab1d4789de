//! What stands in the way for a while: an admission policy, a webhook that is not there, an object as large as they come, a volume.

use std::time::Duration;

use serde_json::json;

use crate::cluster::{Apply, Cluster};
use crate::control_plane::ControlPlane;
use crate::interruptions::{prepare, settles, wait_for_log};
use crate::program;

const PATIENCE: Duration = Duration::from_secs(60);
const DEPLOYMENT: &str = "shop/web";

/// Rejects what Cutlist creates, in words of its own.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: frozen }
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - { apiGroups: [karpenter.sh], apiVersions: ['*'], operations: [CREATE], resources: [nodeclaims] }
  validations: [{ expression: 'false', message: no nodes during the freeze }]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: frozen }
spec: { policyName: frozen, validationActions: [Deny] }
";

/// Nobody listens there.
const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: away }
webhooks:
  - name: away.example.com
    clientConfig: { url: 'https://127.0.0.1:1/' }
    failurePolicy: Fail
    timeoutSeconds: 1
    sideEffects: None
    admissionReviewVersions: [v1]
    rules: [{ apiGroups: [karpenter.sh], apiVersions: ['*'], operations: [CREATE], resources: [nodeclaims] }]
";

/// What is refused is said with the reason, and done when it is allowed.
pub fn admission_refuses_for_a_while(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    settles(&cluster, &program, "before", 0);
    let ways = [
        (POLICY, "no nodes during the freeze", "validatingadmissionpolicybinding/frozen"),
        (WEBHOOK, "failed calling webhook", "validatingwebhookconfiguration/away"),
    ];
    for (objects, words, object) in ways {
        cluster.apply_all(objects);
        std::thread::sleep(Duration::from_secs(2));
        program::scale(&cluster, DEPLOYMENT, 4);
        wait_for_log(&cluster, &cutlist, words);
        assert!(cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty());
        cutlist.must_run();
        plane.tool("kubectl", &["delete", object]).unwrap();
        settles(&cluster, &program, &format!("without {object}"), 4);
        program::scale(&cluster, DEPLOYMENT, 0);
        settles(&cluster, &program, "nothing is left", 0);
    }
    cutlist.must_run();
}

/// Pods that carry as much as the API server takes.
pub fn objects_of_a_mebibyte(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    settles(&cluster, &program, "before", 0);
    let path = "/apis/apps/v1/namespaces/shop/deployments/web";
    // One argument of a program may not be longer than 128 KiB.
    let arguments = vec!["x".repeat(100 * 1024); 10];
    let container = json!({
        "name": "web", "image": "registry.example/web", "args": arguments,
        "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
    });
    let large = json!({ "spec": { "replicas": 4, "template": { "spec": { "containers": [container] } } } });
    cluster.patch(path, &large).unwrap();
    settles(&cluster, &program, "four pods of a mebibyte", 4);
    program::scale(&cluster, DEPLOYMENT, 0);
    settles(&cluster, &program, "nothing is left", 0);
    cutlist.must_run();
}

/// A drained node stays until its volume is detached.
pub fn volumes_are_let_go_first(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (_repository, program) = prepare(plane, &cluster);
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "before", 4);
    let node = cluster.list("/api/v1/nodes")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let attachment = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": { "name": "data" },
        "spec": { "attacher": "ebs.csi.aws.com", "nodeName": node, "source": { "persistentVolumeName": "pv-data" } },
    });
    cluster.apply(&attachment, Apply::ForReal).unwrap();
    program::scale(&cluster, DEPLOYMENT, 0);
    let claims = "/apis/karpenter.sh/v1/nodeclaims";
    cluster.wait("the claim waits for its volume", PATIENCE, |cluster| {
        let claims = cluster.list(claims);
        let waits = |claim: &serde_json::Value| {
            let conditions = claim["status"]["conditions"].as_array().unwrap();
            let waits = conditions.iter().find(|condition| condition["type"] == "VolumesDetached");
            waits.is_some_and(|it| it["status"] == "Unknown" && it["message"] == "1 volume is attached: pv-data")
        };
        if claims.iter().any(waits) { Ok(()) } else { Err(format!("{claims:#?}")) }
    });
    std::thread::sleep(Duration::from_secs(8));
    assert!(is_there(&cluster, &node) && program.instances().contains(&node), "its instance runs on");
    plane.tool("kubectl", &["delete", "volumeattachment", "data"]).unwrap();
    settles(&cluster, &program, "nothing is left", 0);
    cutlist.must_run();
}

fn is_there(cluster: &Cluster, node: &str) -> bool {
    cluster.get(&format!("/api/v1/nodes/{node}")).is_ok()
}
