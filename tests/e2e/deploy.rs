//! `deploy/` on a real API server: what Helm and Kustomize make of it is accepted, runs, and may do what it should.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::ControlPlane;

const PATIENCE: Duration = Duration::from_secs(60);
// A Helm that is built from source does not know which Kubernetes it is for.
const CHART: &[&str] = &["template", "cutlist", "deploy/chart", "--namespace", "cutlist", "--kube-version", "1.35"];
const URL: &[&str] = &["--set", "repository.url=https://git.example.com/nodes.git"];

/// What `observe` may write besides asking who it is.
const OWN: &[(&str, &str)] =
    &[("cutlist.dev", "nodeplans"), ("cutlist.dev", "nodeplans/status"), ("events.k8s.io", "events")];
const WRITES: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

/// Values of the chart that go together.
const VALUES: &[&[&str]] = &[
    &["--set", "mode=observe"],
    &[
        "--set",
        "mode=enforce,aws.clusterName=demo,replicas=1",
        "--set",
        "repository.branch=main,repository.subPath=nodes",
    ],
    &["--set", "mode=enforce,extraArguments={--cloud=embedded}"],
    &["--set", "repository.credentialsSecret=git", "--set", "serviceAccount.annotations.a=b,podAnnotations.c=d"],
    &["--set", "repository.knownHostsConfigMap=hosts,repository.caConfigMap=ca,repository.allowOlderRevision=true"],
    &["--set", "approval={disrupt=manual,confirmPoolRemovalAbove=10%}", "--set", "storage=5Gi"],
    &["--set", "admissionPolicies=false"],
    &["--set", "review.enabled=true,review.repository=acme/nodes,review.tokenSecret=forge,review.hooks.secret=hooks"],
    &[
        "--set",
        "review.enabled=true,review.repository=acme/nodes,review.app.id=a,review.app.keySecret=app",
        "--set",
        "review.requireApproval=true,review.approveMerged=true,review.approvers={acme/platform},review.approversOnly=true",
    ],
    &["--set", "source=flux,flux.name=nodes,flux.namespace=cutlist"],
    &["--set", "source=cluster,settings.configMap=settings"],
    &["--set", "signing.configMap=keys,signing.allowedSigners=signers,signing.policy=policy.yaml"],
    &["--set", "notifications.slackSecret=slack,notifications.webhookSecret=hook,notifications.templateConfigMap=text"],
    &["--set", "notifications.slackSecret=slack,notifications.kinds={plan-waits,plan-failed}"],
    &["--set", "extraArguments={--cloud,embedded}", "--set", "nodeSelector.team=platform,image.tag=test"],
];

pub fn chart_and_kustomize_base_apply(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    prepare(plane, &cluster);
    for arguments in VALUES {
        let rendered = plane.tool("helm", &[CHART, URL, arguments].concat()).unwrap();
        for object in documents(&rendered) {
            cluster.apply(&object, Apply::DryRun).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{object:#}"));
        }
    }
    // Its kind is the Prometheus operator's, which is not here.
    let monitor =
        plane.tool("helm", &[CHART, URL, &["--set", "metrics.serviceMonitor.enabled=true"]].concat()).unwrap();
    assert!(documents(&monitor).iter().any(|object| object["kind"] == "ServiceMonitor"));
    for (arguments, expected) in [
        (&[] as &[&str], "minLength"),
        (&["--set", "mode=destroy"], "mode"),
        (&["--set", "source=flux"], "flux"),
        (&["--set", "source=cluster,signing.configMap=keys,signing.allowedSigners=signers"], "maxLength"),
        (&["--set", "source=cluster,repository.branch=main"], "maxLength"),
        (&["--set", "settings.configMap=settings"], "maxLength"),
        (&["--set", "signing.allowedSigners=signers"], "minLength"),
        (&["--set", "signing.policy=policy.yaml"], "minLength"),
        (&["--set", "mode=enforce"], "where nodes come from"),
        (&["--set", "aws.interruptionQueue=demo"], "minLength"),
        (&["--set", "notifications.templateConfigMap=text"], "webhookSecret"),
        (&["--set", "replicas=0"], "replicas"),
        (&["--set", "approval={disrupt=maybe}"], "approval"),
        (&["--set", "storage=much"], "storage"),
        (&["--set", "repository.ulr=a"], "ulr"),
        (&["--set", "review.enabled=true"], "review.repository"),
        (&["--set", "review.enabled=true,review.repository=a/b"], "review.tokenSecret"),
        (&["--set", "review.approveMerged=true"], "requireApproval"),
    ] {
        let url = if arguments.is_empty() { &[] } else { URL };
        let refused = plane.tool("helm", &[CHART, url, arguments].concat()).unwrap_err();
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
    strings_stay_strings(plane);
    arguments_are_taken(plane);
    for folder in ["deploy/kustomize/base", "deploy/kustomize/enforce"] {
        apply(&cluster, &plane.tool("kubectl", &["kustomize", folder]).unwrap());
        // Admitted, also by the namespace's Pod Security level, and not both on one node.
        cluster.wait(&format!("{folder}: two pods run on two nodes"), PATIENCE, |cluster| {
            let pods = cluster.list("/api/v1/namespaces/cutlist/pods");
            let running = pods
                .iter()
                .filter(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null());
            let nodes: BTreeSet<&str> = running.map(|pod| pod["spec"]["nodeName"].as_str().unwrap()).collect();
            if nodes.len() == 2 { Ok(()) } else { Err(format!("{:#}", Value::Array(pods))) }
        });
    }
    let arguments = cluster.get("/apis/apps/v1/namespaces/cutlist/deployments/cutlist").unwrap();
    let arguments = &arguments["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.as_array().unwrap().contains(&json!("--mode=enforce")), "{arguments}");
}

/// Names that YAML takes for something else, wherever a value is a string.
fn strings_stay_strings(plane: &ControlPlane) {
    let names = "repository.branch,repository.subPath,repository.credentialsSecret,repository.knownHostsConfigMap,\
                 repository.caConfigMap,installation,serviceAccount.name,priorityClassName,notifications.slackSecret,\
                 notifications.webhookSecret,notifications.templateConfigMap,signing.configMap,signing.allowedSigners,\
                 review.tokenSecret,review.hooks.secret,image.tag,metrics.serviceMonitor.interval";
    let with = |names: &str, value: &str| {
        names.split(',').flat_map(|name| ["--set-string".to_owned(), format!("{name}={value}")]).collect::<Vec<_>>()
    };
    let of_review = ["--set", "review.enabled=true,review.repository=a/b,metrics.serviceMonitor.enabled=true"];
    let of_flux = ["--set", "source=flux"];
    let shapes = [(names, &of_review), (names, &["--set", "mode=observe"]), ("flux.name,flux.namespace", &of_flux)];
    for (names, further) in shapes {
        let rendered = |value: &str| {
            let named = with(names, value);
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            documents(&plane.tool("helm", &[CHART, URL, named.as_slice(), further.as_slice()].concat()).unwrap())
        };
        let plain = rendered("name");
        for value in ["on", "n", "123", "1e3"] {
            for (plain, object) in plain.iter().zip(&rendered(value)) {
                has_same_types(plain, object, value);
            }
        }
    }
}

fn has_same_types(plain: &Value, other: &Value, value: &str) {
    match (plain, other) {
        (Value::Object(plain), Value::Object(other)) => {
            assert_eq!(plain.len(), other.len(), "{value}");
            plain.values().zip(other.values()).for_each(|(plain, other)| has_same_types(plain, other, value));
        }
        (Value::Array(plain), Value::Array(other)) => {
            assert_eq!(plain.len(), other.len(), "{value}");
            plain.iter().zip(other).for_each(|(plain, other)| has_same_types(plain, other, value));
        }
        _ => assert_eq!(std::mem::discriminant(plain), std::mem::discriminant(other), "{value}: {plain}, {other}"),
    }
}

/// The program takes the arguments of each source: it gets as far as the API server, which does not answer.
fn arguments_are_taken(plane: &ControlPlane) {
    for shape in [
        "source=repository,repository.branch=main,repository.subPath=a,repository.allowOlderRevision=true",
        "source=cluster",
        "source=flux,flux.name=nodes,repository.subPath=a",
        "mode=enforce,extraArguments={--cloud,embedded},repository.credentialsSecret=git",
    ] {
        let rendered = plane.tool("helm", &[CHART, URL, &["--set", shape]].concat()).unwrap();
        let deployment = documents(&rendered).into_iter().find(|object| object["kind"] == "Deployment").unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let arguments = container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cutlist"));
        let ran = command.args(arguments).args(["--kubeconfig", "/nonexistent"]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(1) && said.contains("kubeconfig"), "{shape}: {said}");
    }
}

/// Rendered with everything that can be mounted.
pub fn pods_have_no_more_than_they_need(plane: &mut ControlPlane) {
    let all = "repository.credentialsSecret=git,repository.knownHostsConfigMap=hosts,repository.caConfigMap=ca";
    let review = "review.enabled=true,review.repository=acme/nodes,review.tokenSecret=forge,review.hooks.secret=hooks";
    let chart = plane.tool("helm", &[CHART, URL, &["--set", all, "--set", review]].concat()).unwrap();
    let base = plane.tool("kubectl", &["kustomize", "deploy/kustomize/enforce"]).unwrap();
    for rendered in [&chart, &base] {
        let objects = documents(rendered);
        let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
        for account in of_kind("ServiceAccount") {
            assert_eq!(account["automountServiceAccountToken"], json!(false));
        }
        assert!(objects.iter().any(|object| object["kind"] == "ValidatingAdmissionPolicyBinding"));
        of_kind("Deployment").for_each(|deployment| has_no_more(&deployment["spec"]["template"]["spec"]));
    }
}

fn has_no_more(pod: &Value) {
    let container = &pod["containers"][0];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], json!(true));
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let security = &container["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], json!(true));
    assert_eq!(security["allowPrivilegeEscalation"], json!(false));
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    for limit in ["memory", "ephemeral-storage"] {
        assert!(container["resources"]["limits"][limit].is_string(), "{limit}: {}", container["resources"]);
    }
    for volume in pod["volumes"].as_array().unwrap() {
        let empty = &volume["emptyDir"];
        assert!(empty.is_null() || empty["sizeLimit"].is_string(), "{volume}");
    }
    for mount in container["volumeMounts"].as_array().unwrap() {
        assert!(mount["name"] == "temporary" || mount["readOnly"] == json!(true), "{mount}");
    }
}

/// Asks the API server, resource by resource and verb by verb, what the role lets through.
pub fn observe_may_write_nothing_but_its_own(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    prepare(plane, &cluster);
    apply(&cluster, &plane.tool("kubectl", &["kustomize", "deploy/kustomize/base"]).unwrap());
    let mut asked = 0;
    for (group, resource) in resources(&cluster) {
        // Everybody may ask what they may do.
        if group == "authorization.k8s.io" || group == "authentication.k8s.io" {
            continue;
        }
        for verb in WRITES {
            asked += 1;
            // In another namespace than its own, where its lease is.
            if may(&cluster, verb, &group, &resource, "default") {
                assert!(OWN.contains(&(&group, &resource)), "observe may {verb} {resource} of {group:?}");
            }
        }
    }
    assert!(asked > 300, "only {asked} questions");
    assert!(may(&cluster, "update", "coordination.k8s.io", "leases", "cutlist"), "its own lease");
    assert!(may(&cluster, "watch", "", "pods", "default"), "what it observes");
    assert!(!may(&cluster, "get", "", "secrets", "cutlist"), "no secrets");
    plane.say(format!("{asked} questions asked"));
}

/// Definitions, the namespace, and two nodes to run on.
fn prepare(plane: &ControlPlane, cluster: &Cluster) {
    plane.tool("kubectl", &["apply", "--server-side", "-f", "deploy/kustomize/base/crds.yaml"]).unwrap();
    plane.tool("kubectl", &["apply", "--server-side", "-f", "deploy/kustomize/base/namespace.yaml"]).unwrap();
    for name in ["a", "b"] {
        cluster.add_node(name, "4");
    }
}

fn apply(cluster: &Cluster, text: &str) {
    for object in documents(text) {
        cluster.apply(&object, Apply::ForReal).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
    }
}

/// Every resource that the server has, with its subresources: group and name.
fn resources(cluster: &Cluster) -> BTreeSet<(String, String)> {
    let groups = cluster.get("/apis").unwrap();
    let paths = groups["groups"].as_array().unwrap().iter().map(|group| {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        (group["name"].as_str().unwrap().to_owned(), format!("/apis/{version}"))
    });
    let paths = paths.chain([(String::new(), "/api/v1".to_owned())]);
    let resources = paths.flat_map(|(group, path)| {
        let list: Value = cluster.get(&path).unwrap()["resources"].take();
        let names: Vec<String> =
            list.as_array().unwrap().iter().map(|resource| resource["name"].as_str().unwrap().to_owned()).collect();
        names.into_iter().map(move |name| (group.clone(), name))
    });
    resources.collect()
}

/// Whether the service account may do it.
fn may(cluster: &Cluster, verb: &str, group: &str, resource: &str, namespace: &str) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "system:serviceaccount:cutlist:cutlist",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:cutlist", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace,
            },
        },
    });
    let answer = cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", &question).unwrap();
    answer["status"]["allowed"].as_bool().unwrap()
}
