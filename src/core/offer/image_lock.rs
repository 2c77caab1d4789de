//! `cutlist.lock` as it would be written now: what the image terms of each class find, as its status says.

use crate::catalog::node_class::says_images_unknown;
use crate::inputs::Inputs;
use cutlist_api::ec2_node_class::{AmiSelectorTerm, EC2NodeClass};
use cutlist_api::image_lock::{ImageLock, LockedClass, LockedImage};

/// Why nobody knows which images a class selects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImagesNotKnown {
    #[error("EC2NodeClass {0} is not in the cluster")]
    NotApplied(String),
    #[error("EC2NodeClass {0} has other amiSelectorTerms in the cluster than in the definitions")]
    OtherTerms(String),
    #[error("the status of EC2NodeClass {0} names no images")]
    NoneFound(String),
    #[error("EC2NodeClass {class}: {why}")]
    Unknown { class: String, why: String },
    #[error("there is no EC2NodeClass {0}")]
    NoSuchClass(String),
}

/// The lock of all classes of the inputs, by name. `only`: names of those to renew, where not all are; of the others what was locked
/// `before` stays. What is not known is an error for each class: a lock that lacks some of its images would replace nodes by others.
pub fn lock(
    inputs: &Inputs<'_>,
    before: Option<&ImageLock>,
    only: &[String],
) -> Result<ImageLock, Vec<ImagesNotKnown>> {
    let name_of = |class: &EC2NodeClass| class.metadata.name.clone().unwrap_or_default();
    let is_there = |name: &String| inputs.node_classes.iter().any(|class| name_of(class) == *name);
    let mut errors: Vec<ImagesNotKnown> =
        only.iter().filter(|name| !is_there(name)).cloned().map(ImagesNotKnown::NoSuchClass).collect();
    let mut node_classes = Vec::new();
    for class in inputs.node_classes {
        let name = name_of(class);
        if !only.is_empty() && !only.contains(&name) {
            node_classes
                .extend(before.into_iter().flat_map(|lock| &lock.node_classes).find(|it| it.name == name).cloned());
            continue;
        }
        match images(inputs, class, &name) {
            Ok(mut images) => {
                images.iter_mut().for_each(|image| image.created = created(inputs, before, &image.id));
                let ami_selector_terms = class.spec.ami_selector_terms.clone();
                node_classes.push(LockedClass { name, ami_selector_terms, images });
            }
            Err(error) => errors.push(error),
        }
    }
    node_classes.sort_by(|one, other| one.name.cmp(&other.name));
    if errors.is_empty() { Ok(ImageLock { node_classes }) } else { Err(errors) }
}

/// When an image was made: as EC2 said now, or when it was locked.
fn created(inputs: &Inputs<'_>, before: Option<&ImageLock>, id: &str) -> Option<String> {
    let locked = before.into_iter().flat_map(|lock| &lock.node_classes).flat_map(|class| &class.images);
    let mut of_lock = locked.filter(|image| image.id == id).filter_map(|image| image.created.clone());
    inputs.policy.images_created.get(id).cloned().or_else(|| of_lock.next())
}

/// In the order in which they count.
fn images(inputs: &Inputs<'_>, class: &EC2NodeClass, name: &str) -> Result<Vec<LockedImage>, ImagesNotKnown> {
    let owned = || name.to_owned();
    let applied = inputs.snapshot.node_classes.iter().find(|it| it.metadata.name.as_deref() == Some(name));
    let applied = applied.ok_or_else(|| ImagesNotKnown::NotApplied(owned()))?;
    if !is_same(&applied.spec.ami_selector_terms, &class.spec.ami_selector_terms) {
        return Err(ImagesNotKnown::OtherTerms(owned()));
    }
    let status = applied.status_now().ok_or_else(|| ImagesNotKnown::NoneFound(owned()))?;
    let mut conditions = status.conditions.iter();
    let unknown = conditions.find(|it| it.type_ == "AMIsReady" && (it.status != "True" || says_images_unknown(it)));
    if let Some(condition) = unknown {
        let why = format!("AMIsReady is {} ({}): {}", condition.status, condition.reason, condition.message);
        return Err(ImagesNotKnown::Unknown { class: owned(), why });
    }
    let mut images: Vec<LockedImage> = Vec::new();
    for image in status.amis.iter().map(LockedImage::from) {
        if !images.contains(&image) {
            images.push(image);
        }
    }
    if images.is_empty() { Err(ImagesNotKnown::NoneFound(owned())) } else { Ok(images) }
}

fn is_same(one: &[AmiSelectorTerm], other: &[AmiSelectorTerm]) -> bool {
    one.iter().all(|term| other.contains(term)) && other.iter().all(|term| one.contains(term))
}
