//! `karpenter.k8s.aws/v1beta1 EC2NodeClass` and `karpenter.k8s.aws/v1alpha1 AWSNodeTemplate` to `karpenter.k8s.aws/v1`.

use serde_json::{Value, json};

use super::editor::Spot;
use super::object_editor::ObjectEditor;
use super::selectors;
use crate::definitions::document::spans;
use crate::definitions::kinds::Kind;

const FAMILY: &str = "/spec/amiFamily";
const TERMS: &str = "/spec/amiSelectorTerms";
/// Where Karpenter 1.0 kept the version of an alias when it converted back.
const ALIAS_VERSION: &str = "/metadata/annotations/compatibility.karpenter.k8s.aws~1v1-alias-version";

pub fn migrate(object: &mut ObjectEditor<'_>) {
    if !object.set("/apiVersion", Kind::EC2NodeClass.api_version()) {
        return;
    }
    if has_spec(object) {
        images(object);
        rest(object);
    }
}

fn has_spec(object: &mut ObjectEditor<'_>) -> bool {
    let has_spec = object.has("/spec");
    if !has_spec {
        object.by_hand("", "the class has no `spec`", "write a `spec` with role, images, subnets and security groups");
    }
    has_spec
}

/// AWSNodeTemplate.
pub fn migrate_template(object: &mut ObjectEditor<'_>) {
    if !object.set("/apiVersion", Kind::EC2NodeClass.api_version()) || !object.set("/kind", Kind::EC2NodeClass.name()) {
        return;
    }
    if !has_spec(object) {
        return;
    }
    for field in ["/spec/apiVersion", "/spec/kind"] {
        if object.has(field) {
            object.remove(field);
        }
    }
    for selector in selectors::ALL {
        selectors::migrate(object, selector);
    }
    if object.has("/spec/launchTemplate") {
        object.by_hand(
            "/spec/launchTemplate",
            "`spec.launchTemplate` has no place in v1: launch templates of others are not used any more",
            "write what it says into the fields of the EC2NodeClass: amiSelectorTerms, userData, blockDeviceMappings, role",
        );
    }
    if !object.is_partial
        && !object.has(FAMILY)
        && !object.has("/spec/launchTemplate")
        && !object.has("/spec/amiSelector")
    {
        let is_written = match object.has(TERMS) {
            true => object.insert("/spec", "amiFamily", "AL2", Spot::Last),
            false => object.insert("/spec", "amiSelectorTerms", json!([{ "alias": "al2@latest" }]), Spot::Last),
        };
        if is_written {
            object.note(
                "/spec",
                "the family of images is written as AL2, which was the default and has to be said in v1",
            );
        }
    } else if !object.has("/spec/launchTemplate") && !object.has("/spec/amiSelector") {
        images(object);
    }
    rest(object);
    if object.has("/status") && object.remove("/status") {
        object.note("", "`status` is dropped: the cluster writes it");
    }
}

/// The images: v1 requires terms, and a family has an alias.
fn images(object: &mut ObjectEditor<'_>) {
    let terms = object.get(TERMS).and_then(Value::as_array).map_or(0, Vec::len);
    let family = object.str(FAMILY).map(str::to_owned);
    if object.is_partial && family.is_none() {
        return;
    }
    if object.is_partial && terms == 0 {
        return object.by_hand(
            FAMILY,
            "`spec.amiFamily` in a patch: whether it becomes an alias depends on what is patched",
            "patch `amiSelectorTerms` with the alias of the family, if the class has no other terms",
        );
    }
    match family.as_deref() {
        Some("Ubuntu") => object.by_hand(
            FAMILY,
            "`amiFamily: Ubuntu` is not known to v1",
            "choose the images in `amiSelectorTerms` by id, name or tags, write `amiFamily: AL2`, and add the volume that Karpenter added \
             for Ubuntu: `/dev/sda1`, 20Gi, gp3",
        ),
        Some(family) if terms == 0 => alias(object, family),
        None if terms == 0 => object.by_hand(
            "/spec",
            "the class says no images: v1 requires `spec.amiSelectorTerms`",
            "add `amiSelectorTerms`, such as `[{ alias: al2023@latest }]`",
        ),
        _ => {}
    }
}

fn alias(object: &mut ObjectEditor<'_>, family: &str) {
    if !["AL2", "AL2023", "Bottlerocket", "Windows2019", "Windows2022"].contains(&family) {
        let message = format!("`amiFamily: {family}` has no alias: v1 requires `spec.amiSelectorTerms`");
        return object.by_hand(FAMILY, message, "add `amiSelectorTerms` that choose the images by id, name or tags");
    }
    let version = object.str(ALIAS_VERSION).filter(|_| !family.starts_with("Windows")).unwrap_or("latest");
    let terms = json!([{ "alias": format!("{}@{version}", family.to_ascii_lowercase()) }]);
    // An empty list said as little as none.
    if object.editor.value().pointer(&object.in_document(TERMS)).is_some() && !object.remove(TERMS) {
        return;
    }
    object.replace(FAMILY, "amiSelectorTerms", &terms);
}

/// What is alike for both kinds.
fn rest(object: &mut ObjectEditor<'_>) {
    const OPTIONS: &str = "/spec/metadataOptions";
    const LIMIT: &str = "httpPutResponseHopLimit";
    if object.is_partial {
        return;
    }
    let limit = spans::join(OPTIONS, LIMIT);
    if !object.has(&limit) {
        let is_written = match object.editor.value().pointer(&object.in_document(OPTIONS)) {
            None => object.insert("/spec", "metadataOptions", json!({ LIMIT: 2 }), Spot::Last),
            Some(options) if options.as_object().is_some_and(|it| it.contains_key(LIMIT)) => object.set(&limit, 2),
            Some(_) => object.insert(OPTIONS, LIMIT, 2, Spot::Last),
        };
        if is_written {
            object.note(
                &limit,
                "`metadataOptions.httpPutResponseHopLimit: 2` is written: it was the default, and is 1 in v1; with 1, pods reach the \
                 instance's metadata from the host network alone",
            );
        }
    }
    let is_said =
        ["role", "instanceProfile", "launchTemplate"].iter().any(|field| object.has(&format!("/spec/{field}")));
    if !is_said {
        object.by_hand(
            "/spec",
            "the class has neither `role` nor `instanceProfile`: v1 requires one of them, and there is no default for all classes any more",
            "add the `role` of the nodes (the name, not the ARN)",
        );
    }
}
