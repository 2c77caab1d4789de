//! Writes: each one call or two, idempotent, and seen by the next observation whether or not its event came.

use std::sync::Arc;
use std::time::Duration;

use either::Either;
use k8s_openapi::api::core::v1::{Node, Pod as CorePod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{self as meta, ObjectMeta};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, Request};
use kube::{Api, Error, Resource};
use serde_json::{Map, Value, json};

use crate::api::keys::FIELD_MANAGER;
use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlan;
use crate::api::node_pool::NodePool;
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::{ForEachKind, Stored, for_each_kind};
use crate::core::snapshot::nodes::{other_lists_replaced, replaces_lists};
use crate::core::snapshot::{Doubts, Pod, Snapshot};
use crate::ports::{Cluster, PortError, PortErrorKind, SeenDefinition};

use super::cluster::KubernetesCluster;
use super::failure::{is_not_found, is_refused_by_admission, port_error};
use super::merge_patch::merge_patch;
use super::reflector::Reflector;
use super::watched::{Watched, all};

impl Cluster for KubernetesCluster {
    async fn observe(&self) -> Result<Arc<Snapshot>, PortError> {
        self.observe_now().await
    }

    fn never_read(&self) -> Doubts {
        self.never_read_now()
    }

    async fn changed(&self) {
        self.changed_since_observed().await;
    }

    async fn rehearse(&self, object: &Value) -> Result<(), PortError> {
        self.apply_with(object, &PatchParams::apply(FIELD_MANAGER).dry_run(), "check").await
    }

    async fn apply(&self, object: &Value) -> Result<(), PortError> {
        self.leads("apply definitions")?;
        self.apply_with(object, &PatchParams::apply(FIELD_MANAGER), "apply").await
    }

    async fn prune(&self, definition: &SeenDefinition) -> Result<(), PortError> {
        let SeenDefinition { kind, name, uid, resource_version } = definition;
        let operation = format!("delete {kind} {name}");
        self.leads(&operation)?;
        let Address { resource, .. } = address_of(kind)?;
        let api: Api<DynamicObject> = match name.split_once('/') {
            Some((namespace, _)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let name = name.rsplit('/').next().unwrap_or(name);
        let preconditions = as_seen(uid, resource_version);
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        gone_is_done(api.delete(name, &parameters).await.map(|_| ()), &operation)
    }

    async fn write_status(&self, object: &Value) -> Result<(), PortError> {
        let (api, name, operation) = self.addressed(object, "write the status of")?;
        self.leads(&operation)?;
        let kind = object["kind"].as_str().unwrap_or_default();
        let patch = json!({ "status": merge_patch(&self.observed_status(kind, &name), &object["status"]) });
        let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        written.map(|_| ()).map_err(|error| port_error(operation, error))
    }

    async fn patch_node_pool(&self, name: &str, patch: &Value) -> Result<(), PortError> {
        let operation = format!("patch nodepool {name}");
        self.leads(&operation)?;
        let api: Api<NodePool> = Api::all(self.client.clone());
        let written = api.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        written.map(|_| ()).map_err(|error| port_error(operation, error))
    }

    async fn create_node_claim(&self, claim: &NodeClaim) -> Result<NodeClaim, PortError> {
        let operation = format!("create nodeclaim {}", claim.metadata.name.as_deref().unwrap_or_default());
        self.leads(&operation)?;
        let parameters = PostParams { field_manager: manager(), ..PostParams::default() };
        let created = self.claims().create(&parameters, claim).await;
        let created = created.map_err(|error| port_error(operation, error))?;
        self.node_claims.wrote(created.clone());
        Ok(created)
    }

    /// Metadata and status are two calls, each only where something changed. Labels come before the status that says they are
    /// there: who ends in between does both again. A finalizer goes last, as the claim may go with it.
    async fn update_node_claim(&self, claim: &NodeClaim) -> Result<(), PortError> {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let operation = format!("update nodeclaim {name}");
        self.leads(&operation)?;
        let failed = |error| port_error(operation.clone(), error);
        let Some(before) = self.latest(&self.node_claims, &name) else {
            return Err(PortError { operation, kind: PortErrorKind::NotFound, source: None });
        };
        // What others changed since would be set back.
        if before.metadata.resource_version != claim.metadata.resource_version {
            return Err(changed_meanwhile(operation));
        }
        let metadata = metadata_patch(&before, claim);
        let releases = metadata.contains_key("finalizers");
        if !releases {
            self.write_metadata(&name, &metadata).await.map_err(failed)?;
        }
        if claim.status != before.status
            && let Some(status) = &claim.status
        {
            let patch = json!({ "status": merge_patch(&json!(before.status), &json!(status)) });
            let written = self.claims().patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            self.node_claims.wrote(written.map_err(failed)?);
        }
        if releases {
            self.write_metadata(&name, &metadata).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn delete_node_claim(&self, name: &str, uid: &str) -> Result<(), PortError> {
        let operation = format!("delete nodeclaim {name}");
        self.leads(&operation)?;
        gone_is_done(delete(&self.claims(), &self.node_claims, name, uid).await, &operation)
    }

    async fn patch_node(&self, node: &Node, patch: &Value) -> Result<(), PortError> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let operation = format!("patch node {name}");
        self.leads(&operation)?;
        let newest = self.latest(&self.nodes, name);
        if newest.as_ref().is_some_and(|newest| other_lists_replaced(node, newest, patch)) {
            return Err(changed_meanwhile(operation));
        }
        // Nor may a list that nobody here has seen yet be replaced. Other changes, such as those of a kubelet, do no harm.
        let version = newest.filter(|_| replaces_lists(patch)).and_then(|newest| newest.metadata.resource_version);
        let patch = with_version(patch.clone(), version);
        let node = self.core_nodes().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        let node = node.map_err(|error| port_error(operation, error))?;
        seen(&self.nodes, node);
        Ok(())
    }

    async fn delete_node(&self, name: &str, uid: &str) -> Result<(), PortError> {
        let operation = format!("delete node {name}");
        self.leads(&operation)?;
        delete(&self.core_nodes(), &self.nodes, name, uid).await.map_err(|error| port_error(operation, error))
    }

    async fn pods_on_now(&self, node: &str) -> Result<Vec<Pod>, PortError> {
        let parameters = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let mut pods = self.list_now::<Pod>(&self.pods, parameters, |unreadable| unreadable.node == node).await?;
        pods.retain(|pod| pod.spec.node_name.as_deref() == Some(node));
        Ok(pods)
    }

    async fn nodes_now(&self) -> Result<Vec<Node>, PortError> {
        self.list_now::<Node>(&self.nodes, ListParams::default(), |_| true).await
    }

    async fn node_claims_now(&self) -> Result<Vec<NodeClaim>, PortError> {
        self.list_now::<NodeClaim>(&self.node_claims, ListParams::default(), |_| true).await
    }

    async fn node_now(&self, name: &str) -> Result<Option<Node>, PortError> {
        let nodes = self.list_now::<Node>(&self.nodes, of_name(name), |unreadable| unreadable.name == name).await?;
        Ok(nodes.into_iter().find(|node| node.metadata.name.as_deref() == Some(name)))
    }

    async fn node_claim_now(&self, name: &str) -> Result<Option<NodeClaim>, PortError> {
        let is_it = |unreadable: &Unreadable| unreadable.name == name;
        let claims = self.list_now::<NodeClaim>(&self.node_claims, of_name(name), is_it).await?;
        Ok(claims.into_iter().find(|claim| claim.metadata.name.as_deref() == Some(name)))
    }

    async fn evict(&self, namespace: &str, name: &str, uid: &str) -> Result<(), PortError> {
        let operation = format!("evict {namespace}/{name}");
        self.leads(&operation)?;
        let pods: Api<CorePod> = Api::namespaced(self.client.clone(), namespace);
        let eviction = eviction_of(namespace, name, uid);
        let parameters = PostParams::default();
        match pods.create_subresource::<_, Value>("eviction", name, &parameters, &eviction).await {
            Ok(_) => Ok(()),
            // The API's ways to say that a budget forbids it now, and that it can not tell which of two would.
            Err(Error::Api(status))
                if !is_refused_by_admission(&status)
                    && (status.code == 429
                        || (status.code == 500 && status.message.contains("PodDisruptionBudget"))) =>
            {
                let why = reason_of_refusal(&status);
                Err(PortError { operation: format!("{operation}: {why}"), kind: PortErrorKind::Conflict, source: None })
            }
            Err(error) => Err(unless_another(operation, error)),
        }
    }

    async fn delete_pod(&self, namespace: &str, name: &str, uid: &str, grace_seconds: u64) -> Result<(), PortError> {
        let operation = format!("delete pod {namespace}/{name}");
        self.leads(&operation)?;
        let pods: Api<CorePod> = Api::namespaced(self.client.clone(), namespace);
        let grace = u32::try_from(grace_seconds).unwrap_or(u32::MAX);
        let parameters = DeleteParams { preconditions: only(uid), ..DeleteParams::default().grace_period(grace) };
        let deleted = pods.delete(name, &parameters).await;
        deleted.map(|_| ()).map_err(|error| unless_another(operation, error))
    }

    /// In `status.nominatedNodeName`, which kube-scheduler tries first. It forgets the name of a node that is not there.
    async fn nominate(&self, namespace: &str, pod: &str, node: &str) -> Result<(), PortError> {
        if self.nodes.resource_version("", node).is_none() {
            return Ok(());
        }
        let operation = format!("nominate {node} for pod {namespace}/{pod}");
        self.leads(&operation)?;
        let patch = json!({ "status": { "nominatedNodeName": node } });
        let request = Request::new(CorePod::url_path(&(), Some(namespace)));
        let request = request.patch_subresource("status", pod, &PatchParams::default(), &Patch::Merge(&patch));
        let request = request.map_err(|error| port_error(operation.clone(), Error::BuildRequest(error)))?;
        // Read as our own pod: its trimmed form is what the reflector keeps.
        match self.client.request::<Watched<Pod>>(request).await {
            Ok(written) => {
                self.pods.saw(written);
                Ok(())
            }
            // It was bound meanwhile.
            Err(Error::Api(status)) if status.code == 422 && !is_refused_by_admission(&status) => Ok(()),
            Err(error) => gone_is_done(Err(error), &operation),
        }
    }

    /// Creates the object with its status, or changes the status of the one there is: a plan itself never changes.
    async fn record_plan(&self, plan: &NodePlan) -> Result<(), PortError> {
        let name = plan.metadata.name.clone().unwrap_or_default();
        let operation = format!("write nodeplan {name}");
        self.leads(&operation)?;
        let api: Api<NodePlan> = Api::all(self.client.clone());
        if !self.has_plan(&name) {
            let parameters = PostParams { field_manager: manager(), ..PostParams::default() };
            match api.create(&parameters, plan).await {
                Ok(created) => self.node_plans.wrote(created),
                Err(Error::Api(status)) if status.code == 409 && !is_refused_by_admission(&status) => {}
                Err(error) => return Err(port_error(operation, error)),
            }
        }
        let before = if self.node_plans.is_unreadable("", &name) {
            // Nobody knows which field it is that can not be read.
            STATUS_OF_PLANS.into_iter().map(|field| (field, Value::Null)).collect()
        } else {
            json!(self.latest(&self.node_plans, &name).and_then(|plan| plan.status))
        };
        let patch = json!({ "status": merge_patch(&before, &json!(plan.status)) });
        let api = all::<NodePlan>(&self.client);
        let written = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        self.node_plans.saw(written.map_err(|error| port_error(operation, error))?);
        Ok(())
    }

    async fn forget_plan(&self, name: &str, uid: &str) -> Result<(), PortError> {
        let operation = format!("delete nodeplan {name}");
        self.leads(&operation)?;
        gone_is_done(delete(&Api::all(self.client.clone()), &self.node_plans, name, uid).await, &operation)
    }
}

/// The fields of the status of a NodePlan.
pub(super) const STATUS_OF_PLANS: [&str; 8] =
    ["conditions", "fidelity", "history", "message", "movesBegun", "observedGeneration", "phase", "text"];

/// A list of one: unlike what is got by its name, it is held against what a watch shows as other lists are.
fn of_name(name: &str) -> ListParams {
    ListParams::default().fields(&format!("metadata.name={name}"))
}

/// How long a look at what is there now may take, with all its pages: something waits for it that would end, and does not end without it.
const LOOK_MAX: Duration = Duration::from_secs(20);

impl KubernetesCluster {
    /// Objects as the API server has them now, and not as its cache or a watch has them. The next observation sees them, too.
    async fn list_now<T: Stored>(
        &self,
        reflector: &Reflector<T>,
        parameters: ListParams,
        is_asked_for: impl Fn(&Unreadable) -> bool,
    ) -> Result<Vec<T>, PortError> {
        let operation = format!("list {} once more", T::RESOURCE);
        let listed = self.list_pages(reflector, parameters, is_asked_for, operation.clone());
        tokio::time::timeout(LOOK_MAX, listed).await.unwrap_or_else(|_| {
            let source = Some(format!("no answer for {} seconds", LOOK_MAX.as_secs()).into());
            Err(PortError { operation, kind: PortErrorKind::Temporary, source })
        })
    }

    async fn list_pages<T: Stored>(
        &self,
        reflector: &Reflector<T>,
        mut parameters: ListParams,
        is_asked_for: impl Fn(&Unreadable) -> bool,
        operation: String,
    ) -> Result<Vec<T>, PortError> {
        let api = all::<T>(&self.client);
        let mut objects = Vec::new();
        parameters = parameters.limit(super::watched::PAGE);
        loop {
            let page = api.list(&parameters).await.map_err(|error| port_error(operation.clone(), error))?;
            for watched in page.items {
                match &watched.object {
                    Ok(object) => objects.push(object.clone()),
                    Err(unreadable) if is_asked_for(unreadable) => {
                        let text = format!("{} can not be read: {}", unreadable.object(), unreadable.why);
                        return Err(PortError { operation, kind: PortErrorKind::Permanent, source: Some(text.into()) });
                    }
                    Err(_) => {}
                }
                reflector.saw(watched);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(objects),
            }
        }
    }

    fn claims(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    async fn write_metadata(&self, name: &str, metadata: &Map<String, Value>) -> Result<(), Error> {
        if metadata.is_empty() {
            return Ok(());
        }
        // A finalizer that somebody adds meanwhile must not get lost.
        let version = self.node_claims.resource_version("", name);
        let patch = with_version(json!({ "metadata": metadata }), version);
        let written = self.claims().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        seen(&self.node_claims, written);
        Ok(())
    }

    fn core_nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Whoever lost the lease must not write, however far it had come.
    fn leads(&self, operation: &str) -> Result<(), PortError> {
        if self.leadership.leads() {
            return Ok(());
        }
        let operation = format!("{operation}: another replica leads now");
        Err(PortError { operation, kind: PortErrorKind::Denied, source: None })
    }

    async fn apply_with(&self, object: &Value, parameters: &PatchParams, verb: &str) -> Result<(), PortError> {
        let (api, name, operation) = self.addressed(object, verb)?;
        let applied = api.patch(&name, parameters, &Patch::Apply(object)).await;
        applied.map(|_| ()).map_err(|error| port_error(operation, error))
    }

    /// Where an object that is given as JSON lives; its name; what is about to be done to it.
    /// The status of a definition, as it was observed.
    fn observed_status(&self, kind: &str, name: &str) -> Value {
        let snapshot = self.observed();
        let is_it = |metadata: &ObjectMeta| metadata.name.as_deref() == Some(name);
        match kind {
            "NodePool" => json!(snapshot.node_pools.iter().find(|it| is_it(&it.metadata)).map(|it| &it.status)),
            "EC2NodeClass" => json!(snapshot.node_classes.iter().find(|it| is_it(&it.metadata)).map(|it| &it.status)),
            _ => Value::Null,
        }
    }

    fn addressed(&self, object: &Value, verb: &str) -> Result<(Api<DynamicObject>, String, String), PortError> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let kind = text("/kind");
        let Address { resource, is_namespaced } = address_of(kind)?;
        let (name, namespace) = (text("/metadata/name").to_owned(), text("/metadata/namespace"));
        let api = if is_namespaced {
            let namespace = if namespace.is_empty() { "default" } else { namespace };
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        } else {
            Api::all_with(self.client.clone(), &resource)
        };
        let operation = format!("{verb} {kind} {name}");
        Ok((api, name, operation))
    }
}

/// That just this object is meant, and not one that has taken its name.
fn only(uid: &str) -> Option<Preconditions> {
    as_seen(uid, "")
}

/// The same, as it was when it was seen.
fn as_seen(uid: &str, resource_version: &str) -> Option<Preconditions> {
    let known = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (uid, resource_version) = (known(uid), known(resource_version));
    (uid.is_some() || resource_version.is_some()).then_some(Preconditions { uid, resource_version })
}

/// Written here: the client's own way to evict calls the field `delete_options`, which the API server does not know and passes over.
fn eviction_of(namespace: &str, name: &str, uid: &str) -> Eviction {
    let preconditions = meta::Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    let only_this = meta::DeleteOptions { preconditions: Some(preconditions), ..meta::DeleteOptions::default() };
    let metadata =
        ObjectMeta { namespace: Some(namespace.to_owned()), name: Some(name.to_owned()), ..ObjectMeta::default() };
    Eviction { metadata, delete_options: (!uid.is_empty()).then_some(only_this) }
}

/// Where another one has its name, the pod that was meant is gone.
fn unless_another(operation: String, error: Error) -> PortError {
    let failed = port_error(operation, error);
    let kind = if failed.kind == PortErrorKind::Conflict { PortErrorKind::NotFound } else { failed.kind };
    PortError { kind, ..failed }
}

fn manager() -> Option<String> {
    Some(FIELD_MANAGER.to_owned())
}

/// Asks for the end of an object without a namespace, and of no other that has its name by now; one that finalizers hold is still there.
async fn delete<T>(api: &Api<T>, reflector: &Reflector<T>, name: &str, uid: &str) -> Result<(), Error>
where
    T: Stored + Resource<DynamicType = ()>,
{
    let parameters = DeleteParams { preconditions: only(uid), ..DeleteParams::default() };
    match api.delete(name, &parameters).await? {
        Either::Left(object) => seen(reflector, object),
        Either::Right(_) => reflector.saw_go("", name),
    }
    Ok(())
}

/// What the API server answered to a write. An object on its way out goes with its last finalizer.
fn seen<T: Stored + Resource>(reflector: &Reflector<T>, object: T) {
    if is_gone(object.meta()) {
        reflector.saw_go("", object.meta().name.as_deref().unwrap_or_default());
    } else {
        reflector.wrote(object);
    }
}

fn is_gone(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_deref().unwrap_or_default().is_empty()
}

/// What was to go is gone already: that is as good.
fn gone_is_done(result: Result<(), Error>, operation: &str) -> Result<(), PortError> {
    match result {
        Err(Error::Api(status)) if is_not_found(&status) => Ok(()),
        result => result.map_err(|error| port_error(operation, error)),
    }
}

/// The sentence that names the budget, where the answer has one.
fn reason_of_refusal(status: &kube::core::Status) -> String {
    let cause = status.details.as_ref().and_then(|details| details.causes.first());
    cause.map_or_else(|| status.message.clone(), |cause| cause.message.clone())
}

fn changed_meanwhile(operation: String) -> PortError {
    let operation = format!("{operation}: it changed meanwhile");
    PortError { operation, kind: PortErrorKind::Conflict, source: None }
}

fn with_version(mut patch: Value, version: Option<String>) -> Value {
    if let (Some(version), Some(patch)) = (version, patch.as_object_mut()) {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
    }
    patch
}

/// Merge patch of what changed in labels, annotations, owners and finalizers.
fn metadata_patch(before: &NodeClaim, after: &NodeClaim) -> Map<String, Value> {
    let mut patch = Map::new();
    for (field, before, after) in [
        ("labels", &before.metadata.labels, &after.metadata.labels),
        ("annotations", &before.metadata.annotations, &after.metadata.annotations),
    ] {
        let (before, after) = (before.clone().unwrap_or_default(), after.clone().unwrap_or_default());
        let set = after.iter().filter(|(key, value)| before.get(*key) != Some(value));
        let mut changes: Map<String, Value> = set.map(|(key, value)| (key.clone(), value.clone().into())).collect();
        let dropped = before.keys().filter(|key| !after.contains_key(*key));
        changes.extend(dropped.map(|key| (key.clone(), Value::Null)));
        if !changes.is_empty() {
            patch.insert(field.to_owned(), changes.into());
        }
    }
    if before.metadata.owner_references != after.metadata.owner_references {
        patch.insert("ownerReferences".to_owned(), json!(after.metadata.owner_references.clone().unwrap_or_default()));
    }
    let (before, after) = (&before.metadata.finalizers, &after.metadata.finalizers);
    if before.as_deref().unwrap_or_default() != after.as_deref().unwrap_or_default() {
        patch.insert("finalizers".to_owned(), json!(after.clone().unwrap_or_default()));
    }
    patch
}

/// Where objects of a kind live.
struct Address {
    resource: ApiResource,
    is_namespaced: bool,
}

/// The address of a kind that a snapshot holds.
fn address_of(kind: &str) -> Result<Address, PortError> {
    struct Find<'a>(&'a str, Option<Address>);
    impl ForEachKind for Find<'_> {
        fn kind<T: Stored>(&mut self) {
            if T::KIND == self.0 {
                let (group, version) = super::watched::group_and_version::<T>();
                let kind = GroupVersionKind::gvk(group, version, T::KIND);
                let resource = ApiResource::from_gvk_with_plural(&kind, T::RESOURCE);
                self.1 = Some(Address { resource, is_namespaced: T::NAMESPACED });
            }
        }
    }
    let mut find = Find(kind, None);
    for_each_kind(&mut find);
    let operation = || format!("find out where objects of kind {kind:?} live");
    find.1.ok_or_else(|| PortError { operation: operation(), kind: PortErrorKind::Permanent, source: None })
}
