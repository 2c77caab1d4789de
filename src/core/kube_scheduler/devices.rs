//! DynamicResources: whether the pods of a node can all have the devices that their claims ask for, at the same time.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, DeviceClaim, DeviceRequest, DeviceSelector, ResourceSlice};
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value};

use crate::snapshot::{Pod, Snapshot};

use super::context::FilterContext;
use super::objects::node_name;
use super::selectors::node_selector_matches;
use super::{Filter, FilterRefusal};

/// A search that takes longer proves nothing; the node is then not refused.
const STEPS_MAX: usize = 200_000;

/// Name, how many devices (`None`: all), of which positions.
type Alternative = (String, Option<usize>, Vec<usize>);

/// One request, with its alternatives.
struct RequestedDevices {
    claim: String,
    name: String,
    alternatives: Vec<Alternative>,
}

/// A claim whose devices must agree in an attribute.
struct Agreement {
    claim: String,
    attribute: String,
    requests: Vec<String>,
}

/// A device of the node, and whether nobody has it.
struct Offered<'a> {
    slice: &'a ResourceSlice,
    device: &'a Device,
    free: bool,
}

#[derive(Default)]
struct Wanted {
    wants: Vec<RequestedDevices>,
    agreements: Vec<Agreement>,
}

pub(super) fn refusal(pod: &Pod, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    let claim = pod.spec.resource_claims.first()?;
    let no = |text: String| Some(FilterRefusal::new(Filter::DynamicResources, text));
    let Some(snapshot) = context.devices else {
        return no(format!("resource claim {} can not be judged", claim.name));
    };
    let offered = offered(snapshot, node_name(node));
    let mut wanted = Wanted::default();
    if let Err(text) = want(pod, node, snapshot, &offered, &mut wanted) {
        return no(text);
    }
    // Pods that were there before have theirs.
    let others = context.pods_on(node_name(node)).filter(|other| other.spec.node_name.is_none());
    for other in others.filter(|other| other.key() != pod.key()) {
        if let Err(text) = want(other, node, snapshot, &offered, &mut wanted) {
            return no(text);
        }
    }
    let mut steps = 0;
    let fits = assign(&wanted, &offered, 0, &mut Vec::new(), &mut steps);
    if fits || steps > STEPS_MAX { None } else { no(format!("devices of resource claim {} are not free", claim.name)) }
}

fn offered<'a>(snapshot: &'a Snapshot, node: &str) -> Vec<Offered<'a>> {
    let claims = snapshot.resource_claims.iter();
    let allocations = claims.filter_map(|claim| claim.status.as_ref()?.allocation.as_ref()?.devices.as_ref());
    let taken: BTreeSet<(&str, &str, &str)> = allocations
        .flat_map(|devices| devices.results.iter().flatten())
        .filter(|result| !result.admin_access.unwrap_or(false))
        .map(|result| (result.driver.as_str(), result.pool.as_str(), result.device.as_str()))
        .collect();
    let mut offered = Vec::new();
    for slice in snapshot.resource_slices.iter().filter(|slice| slice.spec.node_name.as_deref() == Some(node)) {
        let spec = &slice.spec;
        let siblings = || {
            let slices = snapshot.resource_slices.iter().map(|slice| &slice.spec);
            slices.filter(|other| other.driver == spec.driver && other.pool.name == spec.pool.name)
        };
        if siblings().any(|other| other.pool.generation > spec.pool.generation) {
            continue;
        }
        let present = siblings().filter(|other| other.pool.generation == spec.pool.generation).count();
        let complete = i64::try_from(present) == Ok(spec.pool.resource_slice_count);
        for device in spec.devices.iter().flatten() {
            let plain = device.consumes_counters.iter().flatten().next().is_none()
                && !device.allow_multiple_allocations.unwrap_or(false)
                && device.taints.iter().flatten().next().is_none()
                && device.binding_conditions.iter().flatten().next().is_none();
            let key = (spec.driver.as_str(), spec.pool.name.as_str(), device.name.as_str());
            offered.push(Offered { slice, device, free: complete && plain && !taken.contains(&key) });
        }
    }
    offered
}

/// Adds what the claims of a pod want of the node; the error says why they can not have it here at all.
fn want(
    pod: &Pod,
    node: &Node,
    snapshot: &Snapshot,
    offered: &[Offered<'_>],
    wanted: &mut Wanted,
) -> Result<(), String> {
    for reference in &pod.spec.resource_claims {
        let status = pod.status.resource_claim_statuses.iter().find(|status| status.name == reference.name);
        let made = status.and_then(|status| status.resource_claim_name.as_ref());
        if reference.resource_claim_name.is_none() && status.is_some() && made.is_none() {
            continue;
        }
        let is_named = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta, name: &String| {
            metadata.name.as_ref() == Some(name)
                && metadata.namespace.as_deref().unwrap_or("default") == pod.metadata.namespace
        };
        let devices: Option<&DeviceClaim> = if let Some(name) = reference.resource_claim_name.as_ref().or(made) {
            let mut claims = snapshot.resource_claims.iter();
            let claim = claims.find(|claim| is_named(&claim.metadata, name));
            let claim = claim.ok_or_else(|| format!("resource claim {name} does not exist"))?;
            if let Some(allocation) = claim.status.as_ref().and_then(|status| status.allocation.as_ref()) {
                match &allocation.node_selector {
                    Some(selector) if !node_selector_matches(selector, node) => {
                        return Err(format!("resource claim {name} has its devices elsewhere"));
                    }
                    _ => continue,
                }
            }
            claim.spec.devices.as_ref()
        } else {
            let mut templates = snapshot.resource_claim_templates.iter();
            let name = reference.resource_claim_template_name.clone().unwrap_or_default();
            let template = templates.find(|template| is_named(&template.metadata, &name));
            let template = template.ok_or_else(|| format!("resource claim template {name} does not exist"))?;
            template.spec.spec.devices.as_ref()
        };
        let claim = format!("{} {}", pod.key(), reference.name);
        for request in devices.and_then(|devices| devices.requests.as_ref()).into_iter().flatten() {
            let alternatives = alternatives(request, snapshot, offered)?;
            wanted.wants.push(RequestedDevices { claim: claim.clone(), name: request.name.clone(), alternatives });
        }
        for constraint in devices.and_then(|devices| devices.constraints.as_ref()).into_iter().flatten() {
            wanted.agreements.push(Agreement {
                claim: claim.clone(),
                attribute: constraint.match_attribute.clone().ok_or("a constraint can not be judged")?,
                requests: constraint.requests.clone().unwrap_or_default(),
            });
        }
    }
    Ok(())
}

fn alternatives(
    request: &DeviceRequest,
    snapshot: &Snapshot,
    offered: &[Offered<'_>],
) -> Result<Vec<Alternative>, String> {
    let mut alternatives = Vec::new();
    let mut add = |name: &str, mode: Option<&String>, count: Option<i64>, class: &str, own: &[DeviceSelector]| {
        let count = match mode.map(String::as_str) {
            Some("All") => None,
            _ => Some(usize::try_from(count.unwrap_or(1)).unwrap_or(0)),
        };
        let found = snapshot.device_classes.iter().find(|it| it.metadata.name.as_deref() == Some(class));
        let class = found.ok_or_else(|| format!("device class {class} does not exist"))?;
        let mut matching = Vec::new();
        for (position, device) in offered.iter().enumerate() {
            let selectors = class.spec.selectors.iter().flatten().chain(own);
            let answers: Result<Vec<bool>, String> = selectors.map(|selector| will_do(selector, device)).collect();
            if answers?.iter().all(|will_do| *will_do) {
                matching.push(position);
            }
        }
        alternatives.push((name.to_owned(), count, matching));
        Ok::<(), String>(())
    };
    if let Some(it) = &request.exactly {
        let own = it.selectors.as_deref().unwrap_or_default();
        add("", it.allocation_mode.as_ref(), it.count, &it.device_class_name, own)?;
    }
    for it in request.first_available.iter().flatten() {
        let own = it.selectors.as_deref().unwrap_or_default();
        add(&it.name, it.allocation_mode.as_ref(), it.count, &it.device_class_name, own)?;
    }
    Ok(alternatives)
}

/// Whether a selector takes a device, asked of the library with the device written as an expression.
fn will_do(selector: &DeviceSelector, offered: &Offered<'_>) -> Result<bool, String> {
    let expression = &selector.cel.as_ref().ok_or("a selector that is not CEL")?.expression;
    let domains: BTreeSet<&str> = expression.split(['"', '\'']).collect();
    let context = Context::default().with_all();
    let evaluate = |text: &str, context: &Context<'_>| -> Result<Value, String> {
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        program.execute(context).map_err(|error| error.to_string())
    };
    let device = evaluate(&written(offered, &domains), &context)?;
    let mut context = context.new_inner_scope();
    context.add_variable_from_value("device", device);
    Ok(evaluate(expression, &context)? == Value::Bool(true))
}

/// A device as a map in CEL, with an empty domain for each text that an expression could look one up by.
fn written(offered: &Offered<'_>, domains: &BTreeSet<&str>) -> String {
    let driver = &offered.slice.spec.driver;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let attributes = offered.device.attributes.iter().flatten().map(|(name, it)| {
        let text = |function: &str, text: &String| format!("{function}({})", quoted(text));
        let value = (it.bool.map(|it| it.to_string()))
            .or(it.int.map(|it| it.to_string()))
            .or(it.string.as_ref().map(|it| quoted(it)))
            .or(it.version.as_ref().map(|it| text("semver", it)));
        (name, value.unwrap_or_else(|| "null".to_owned()))
    });
    let capacity = offered.device.capacity.iter().flatten();
    let capacity = capacity.map(|(name, it)| (name, format!("quantity({})", quoted(&it.value.0))));
    let map = |entries: Vec<(&String, String)>| {
        let of_domain = |domain: &str| {
            let own = entries.iter().filter_map(|(name, value)| {
                let (of, name) = name.split_once('/').unwrap_or((driver, name));
                (of == domain).then(|| format!("{}: {value}", quoted(name)))
            });
            format!("{}: {{{}}}", quoted(domain), own.collect::<Vec<_>>().join(", "))
        };
        let own = entries.iter().map(|(name, _)| name.split_once('/').map_or(driver.as_str(), |(domain, _)| domain));
        let all: BTreeSet<&str> = own.chain(domains.iter().copied()).collect();
        all.into_iter().map(of_domain).collect::<Vec<_>>().join(", ")
    };
    format!(
        "{{\"driver\": {}, \"allowMultipleAllocations\": false, \"attributes\": {{{}}}, \"capacity\": {{{}}}}}",
        quoted(driver),
        map(attributes.collect()),
        map(capacity.collect())
    )
}

/// Whether every want from `number` on can be met beside what is given: (want, alternative, device).
fn assign(
    wanted: &Wanted,
    offered: &[Offered<'_>],
    number: usize,
    given: &mut Vec<(usize, usize, usize)>,
    steps: &mut usize,
) -> bool {
    let Some(want) = wanted.wants.get(number) else { return true };
    for (position, (_, count, matching)) in want.alternatives.iter().enumerate() {
        let before = given.len();
        let size = count.unwrap_or(matching.len());
        // Every set of that many: `at` is the set, as positions in `matching`, in the order of the alphabet.
        let mut at: Vec<usize> = (0..size).collect();
        if size == 0 || size > matching.len() || size > 32 {
            continue;
        }
        loop {
            *steps += 1;
            if *steps > STEPS_MAX {
                return false;
            }
            given.extend(at.iter().map(|index| (number, position, matching[*index])));
            if is_sound(wanted, offered, given) && assign(wanted, offered, number + 1, given, steps) {
                return true;
            }
            given.truncate(before);
            let Some(last) = (0..size).rev().find(|index| at[*index] < matching.len() - size + index) else { break };
            at[last] += 1;
            for index in last + 1..size {
                at[index] = at[index - 1] + 1;
            }
        }
    }
    false
}

/// Every device is free and given once, and those of a claim agree where they must.
fn is_sound(wanted: &Wanted, offered: &[Offered<'_>], given: &[(usize, usize, usize)]) -> bool {
    let devices: BTreeSet<usize> = given.iter().map(|(.., device)| *device).collect();
    let once = devices.len() == given.len() && devices.iter().all(|device| offered[*device].free);
    let agrees = |agreement: &Agreement| {
        let bound = given.iter().filter(|(want, alternative, _)| {
            let want = &wanted.wants[*want];
            let full = format!("{}/{}", want.name, want.alternatives[*alternative].0);
            let named =
                agreement.requests.is_empty() || agreement.requests.iter().any(|it| *it == want.name || *it == full);
            want.claim == agreement.claim && named
        });
        let mut values = bound.map(|(.., device)| {
            let Offered { slice, device, .. } = &offered[*device];
            let mut attributes = device.attributes.iter().flatten();
            let own = attributes.find(|(name, _)| {
                let full = if name.contains('/') { (*name).clone() } else { format!("{}/{name}", slice.spec.driver) };
                full == agreement.attribute
            });
            own.map(|(_, value)| value)
        });
        let first = values.next();
        first.is_none_or(|first| first.is_some() && values.all(|value| value == first))
    };
    once && wanted.agreements.iter().all(agrees)
}
