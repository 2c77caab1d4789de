//! Which version an image of Bottlerocket is, and what that changes.

use cutlist_api::ec2_node_class::{Ami, AmiSelectorTerm};

/// The version of an image: that in its own name, else that of the alias, of a name or of another image that the class selects, in
/// this order. Images are named `bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a`.
pub fn version_of(image_id: &str, terms: &[AmiSelectorTerm], images: &[Ami]) -> Option<String> {
    let named = |image: &Ami| image.name.as_deref().filter(|name| name.contains("bottlerocket")).and_then(version_in);
    let own = || images.iter().find(|image| image.id == image_id).and_then(named);
    let of_alias = || terms.iter().find_map(|term| Some(term.alias.as_deref()?.split_once('@')?.1.to_owned()));
    let of_name = || terms.iter().find_map(|term| version_in(term.name.as_deref()?));
    own().or_else(of_alias).or_else(of_name).or_else(|| images.iter().find_map(named))
}

fn version_in(name: &str) -> Option<String> {
    name.split('-').find(|part| part.starts_with('v') && part.contains('.')).map(str::to_owned)
}

/// From 1.46 on `ephemeral-storage bind` knows itself what to bind. Source: reference, section 6.3.
pub(super) fn binds_by_itself(version: Option<&str>) -> bool {
    let Some(version) = version else { return false };
    let mut numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(_)) => (major, minor) >= (1, 46),
        _ => version == "latest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_to_versions_that_do_not_know_them() {
        for version in ["latest", "v1.46.0", "1.46.3", "v2.0.0", "1.100.0"] {
            assert!(binds_by_itself(Some(version)), "{version}");
        }
        for version in ["v1.45.9", "1.9.0", "1.46", "v0.99.0", "newest", "", "v1.x.0"] {
            assert!(!binds_by_itself(Some(version)), "{version}");
        }
        assert!(!binds_by_itself(None));
    }

    #[test]
    fn an_image_says_best_itself_which_version_it_is() {
        let image = |id: &str, name: &str| Ami { id: id.to_owned(), name: Some(name.to_owned()), ..Ami::default() };
        let old = image("ami-1", "bottlerocket-aws-k8s-1.33-x86_64-v1.40.0-431fe75a");
        let new = image("ami-2", "bottlerocket-aws-k8s-1.33-aarch64-v1.50.0-431fe75a");
        let term = |alias: Option<&str>, name: Option<&str>| AmiSelectorTerm {
            alias: alias.map(str::to_owned),
            name: name.map(str::to_owned),
            ..AmiSelectorTerm::default()
        };
        let latest = [term(Some("bottlerocket@latest"), None)];
        let images = [old, new];
        assert_eq!(version_of("ami-1", &latest, &images).as_deref(), Some("v1.40.0"));
        assert_eq!(version_of("ami-2", &latest, &images).as_deref(), Some("v1.50.0"));
        assert_eq!(version_of("ami-3", &latest, &images).as_deref(), Some("latest"));
        let by_name = [term(None, Some("*-v1.48.0-*"))];
        assert_eq!(version_of("ami-3", &by_name, &[]).as_deref(), Some("v1.48.0"));
        assert_eq!(version_of("ami-3", &[], &images).as_deref(), Some("v1.40.0"));
        assert_eq!(version_of("ami-3", &[], &[image("ami-3", "mine-v1.48.0")]), None);
    }
}
