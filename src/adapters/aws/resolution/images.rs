//! The images that a class selects: by alias, parameter, id, or by name, tags and owner; every architecture and accelerator variant; of
//! those for the same instance types the best. Source: reference, section 6.2, and Karpenter's `pkg/providers/amifamily`.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::super::api::Filter;
use super::super::api::network::{Image, ImageQuery};
use super::alias::{Alias, AliasError, kubernetes_architecture, requirement};
use super::cluster::KubernetesVersion;
use super::known::{LastAnswer, Trouble};
use crate::api::ec2_node_class::{Ami, AmiSelectorTerm, EC2NodeClassSpec};
use crate::api::keys;
use crate::api::node_pool::NodeSelectorRequirement;

/// Owners that are asked where a term has a name and no owner: a name is anybody's.
const OWNERS_OF_NAMES: [&str; 2] = ["self", "amazon"];

/// What instance types an image is for, beside its architecture: any of these lists.
type Requirements = Vec<Vec<NodeSelectorRequirement>>;

/// Where the images of one term come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A parameter holds the id.
    Parameter { name: String, what: String, requirements: Requirements, lifetime: ParameterLifetime },
    /// The term has it.
    Id(String),
    /// EC2 is asked for what is like that.
    Query { query: ImageQuery, what: String },
}

/// How long the value of a parameter is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterLifetime {
    /// A parameter of the class's owner: it may change at any time.
    Own,
    /// `@latest`
    Latest,
    /// A version that is named never is another image.
    Pinned,
}

/// Why the images of a class can not be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImagesError {
    #[error(transparent)]
    Alias(#[from] AliasError),
    #[error("which images an alias means depends on the version of Kubernetes, which is not known")]
    NoVersion,
}

/// Where to look for the images of a class.
pub fn sources(class: &EC2NodeClassSpec, kubernetes: Option<KubernetesVersion>) -> Result<Vec<Source>, ImagesError> {
    let mut sources = Vec::new();
    for term in &class.ami_selector_terms {
        if let Some(text) = &term.alias {
            let alias = Alias::parse(text)?;
            let lifetime = if alias.is_latest() { ParameterLifetime::Latest } else { ParameterLifetime::Pinned };
            let parameters = alias.parameters(kubernetes.ok_or(ImagesError::NoVersion)?)?;
            sources.extend(parameters.into_iter().map(|parameter| Source::Parameter {
                name: parameter.name,
                what: format!("{text} {}", parameter.what),
                requirements: parameter.requirements,
                lifetime,
            }));
        } else if let Some(name) = &term.ssm_parameter {
            sources.push(Source::Parameter {
                name: name.clone(),
                what: format!("parameter {name}"),
                requirements: vec![Vec::new()],
                lifetime: ParameterLifetime::Own,
            });
        } else if let Some(id) = &term.id {
            sources.push(Source::Id(id.clone()));
        } else if term.name.is_some() || !term.tags.is_empty() || term.owner.is_some() {
            sources.push(query(term));
        }
    }
    Ok(sources)
}

fn query(term: &AmiSelectorTerm) -> Source {
    let mut filters = vec![available()];
    let mut said = Vec::new();
    if let Some(name) = &term.name {
        filters.push(Filter::new("name", [name]));
        said.push(format!("name {name}"));
    }
    for (key, value) in &term.tags {
        filters.push(match value.as_str() {
            "*" => Filter::new("tag-key", [key]),
            value => Filter::new(format!("tag:{key}"), [value]),
        });
        said.push(format!("tag {key}={value}"));
    }
    let owners = match (&term.owner, &term.name) {
        (Some(owner), _) => vec![owner.clone()],
        (None, Some(_)) => OWNERS_OF_NAMES.map(str::to_owned).into(),
        (None, None) => Vec::new(),
    };
    if let Some(owner) = &term.owner {
        said.push(format!("owner {owner}"));
    }
    Source::Query { query: ImageQuery { owners, filters }, what: said.join(" and ") }
}

/// Images that can be launched.
pub fn available() -> Filter {
    Filter::new("state", ["available"])
}

/// What was looked up so far, for all classes.
pub struct LookedUp<'a> {
    /// Values of parameters by name; `None` for one that does not exist.
    pub parameters: &'a BTreeMap<String, LastAnswer<Option<String>>>,
    pub queries: &'a BTreeMap<ImageQuery, LastAnswer<Vec<Image>>>,
    /// Images by their ids. `None` for an id that has not been asked for yet.
    pub by_id: &'a dyn Fn(&str) -> LastAnswer<Option<Image>>,
}

/// The images of a class as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassImages {
    /// The first one whose requirements accept an instance type is its image.
    pub images: Vec<Ami>,
    /// By id, when each was made, as far as EC2 says.
    pub created: BTreeMap<String, Timestamp>,
    /// Part of what the class selects could not be looked up: another image may be the right one. Nothing drifts by that.
    pub unknown: Vec<UnknownImages>,
    /// Terms that find nothing, in words.
    pub unmatched: Vec<String>,
    /// When the oldest part of it was answered.
    pub at: Option<Timestamp>,
    /// Trouble with looking it up anew, while what was known is kept.
    pub trouble: Option<Trouble>,
}

/// A part of a selection that nobody could look up.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownImages {
    /// `al2023@latest amd64 nvidia`
    pub what: String,
    /// A variant of an alias: no other image is for the same instance types.
    pub is_variant: bool,
    pub trouble: Option<Trouble>,
}

/// An image with one list of instance types that it is for.
struct Candidate {
    image: Image,
    requirements: Vec<NodeSelectorRequirement>,
}

/// Puts together what the sources of a class found.
pub fn collect(sources: &[Source], looked_up: &LookedUp<'_>, now: Timestamp) -> ClassImages {
    let mut collected = Collected::default();
    for source in sources {
        match source {
            Source::Id(id) => collected.add_id(id, &format!("id {id}"), &[Vec::new()], false, looked_up),
            Source::Parameter { name, what, requirements, lifetime } => {
                let known = looked_up.parameters.get(name).cloned().unwrap_or_default();
                let is_variant = *lifetime != ParameterLifetime::Own;
                match collected.take(known, what, is_variant) {
                    Some(Some(id)) if id.starts_with("ami-") => {
                        collected.add_id(&id, what, requirements, is_variant, looked_up);
                    }
                    Some(Some(value)) => {
                        collected.found.unmatched.push(format!("{what} holds {value:?}, which is no id of an image"));
                    }
                    // Not each version of an alias has each variant.
                    Some(None) if is_variant => collected.missing_variant = Some(name.clone()),
                    Some(None) => collected.found.unmatched.push(format!("{what} does not exist")),
                    None => {}
                }
            }
            Source::Query { query, what } => {
                let known = looked_up.queries.get(query).cloned().unwrap_or_default();
                let Some(images) = collected.take(known, what, false) else { continue };
                if images.is_empty() {
                    collected.found.unmatched.push(format!("no available image has {what}"));
                }
                images.into_iter().for_each(|image| collected.add(image, &[Vec::new()]));
            }
        }
    }
    collected.finish(now)
}

#[derive(Default)]
struct Collected {
    found: ClassImages,
    candidates: Vec<Candidate>,
    /// A parameter of an alias that does not exist.
    missing_variant: Option<String>,
}

impl Collected {
    /// The value of a part, if it is known; else it is noted as unknown.
    fn take<T>(&mut self, known: LastAnswer<T>, what: &str, is_variant: bool) -> Option<T> {
        let LastAnswer { answer, trouble } = known;
        let Some(answer) = answer else {
            self.found.unknown.push(UnknownImages { what: what.to_owned(), is_variant, trouble });
            return None;
        };
        self.found.at = Some(self.found.at.map_or(answer.at, |at| at.min(answer.at)));
        if self.found.trouble.is_none() {
            self.found.trouble = trouble;
        }
        Some(answer.value)
    }

    fn add_id(
        &mut self,
        id: &str,
        what: &str,
        requirements: &[Vec<NodeSelectorRequirement>],
        is_variant: bool,
        looked_up: &LookedUp<'_>,
    ) {
        let what = if what.contains(id) { what.to_owned() } else { format!("{what} ({id})") };
        match self.take((looked_up.by_id)(id), &what, is_variant) {
            Some(Some(image)) => self.add(image, requirements),
            Some(None) => {
                self.found.unmatched.push(format!("{what}: there is no such image, or it is not for this account"));
            }
            None => {}
        }
    }

    fn add(&mut self, image: Image, requirements: &[Vec<NodeSelectorRequirement>]) {
        let architecture = kubernetes_architecture(&image.architecture).to_owned();
        if !["amd64", "arm64"].contains(&architecture.as_str()) {
            let text = format!("image {} is for {}, which no node runs on", image.id, image.architecture);
            self.found.unmatched.push(text);
            return;
        }
        for list in requirements {
            let mut requirements = list.clone();
            requirements.push(requirement(keys::ARCHITECTURE, Some(&architecture)));
            requirements.sort_by(|one, other| one.key.cmp(&other.key));
            self.candidates.push(Candidate { image: image.clone(), requirements });
        }
    }

    /// Of those for the same types the best: one that is not deprecated, then the newest, then by name.
    fn finish(mut self, now: Timestamp) -> ClassImages {
        if let Some(name) = self.missing_variant.filter(|_| self.candidates.is_empty() && self.found.unknown.is_empty())
        {
            self.found.unmatched.push(format!("no parameter of the alias exists, such as {name}"));
        }
        let is_deprecated = |image: &Image| image.deprecated_at.is_some_and(|at| at <= now);
        self.candidates.sort_by(|one, other| {
            let order = |it: &Candidate| (is_deprecated(&it.image), std::cmp::Reverse(it.image.created_at));
            let names = (&one.image.name, &one.image.id).cmp(&(&other.image.name, &other.image.id));
            order(one).cmp(&order(other)).then(names)
        });
        let mut taken = BTreeSet::new();
        for Candidate { image, requirements } in self.candidates {
            // Plain data always has a JSON form.
            if !taken.insert(serde_json::to_string(&requirements).unwrap_or_default()) {
                continue;
            }
            self.found.created.extend(image.created_at.map(|at| (image.id.clone(), at)));
            self.found.images.push(Ami {
                name: Some(image.name.clone()).filter(|name| !name.is_empty()),
                deprecated: is_deprecated(&image).then_some(true),
                id: image.id,
                requirements,
            });
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::api::{Action, ApiError};
    use super::super::alias::GPU_MANUFACTURER;
    use super::*;
    use crate::core::catalog::node_class::image_for;
    use crate::core::catalog::{Catalog, InstanceType};

    fn now() -> Timestamp {
        "2026-09-01T00:00:00Z".parse().unwrap()
    }

    fn image(id: &str, name: &str, architecture: &str, created: &str, deprecated: Option<&str>) -> Image {
        Image {
            id: id.to_owned(),
            name: name.to_owned(),
            architecture: architecture.to_owned(),
            created_at: Some(created.parse().unwrap()),
            deprecated_at: deprecated.map(|at| at.parse().unwrap()),
        }
    }

    fn of_query(images: Vec<Image>) -> ClassImages {
        let query = ImageQuery::default();
        let queries = BTreeMap::from([(query.clone(), LastAnswer::answered(images, now()))]);
        let looked_up =
            LookedUp { parameters: &BTreeMap::new(), queries: &queries, by_id: &|_| LastAnswer::answered(None, now()) };
        collect(&[Source::Query { query, what: "name x".to_owned() }], &looked_up, now())
    }

    fn ids(found: &ClassImages) -> Vec<&str> {
        found.images.iter().map(|image| image.id.as_str()).collect()
    }

    #[test]
    fn the_newest_that_is_not_deprecated_comes_first() {
        let found = of_query(vec![
            image("ami-1", "old", "x86_64", "2026-01-01T00:00:00Z", None),
            image("ami-2", "newest", "x86_64", "2026-08-01T00:00:00Z", Some("2026-08-15T00:00:00Z")),
            image("ami-3", "new", "x86_64", "2026-07-01T00:00:00Z", Some("2027-01-01T00:00:00Z")),
            image("ami-4", "arm", "arm64", "2026-02-01T00:00:00Z", Some("2026-03-01T00:00:00Z")),
            image("ami-5", "mac", "x86_64_mac", "2026-02-01T00:00:00Z", None),
        ]);
        assert_eq!(
            ids(&found),
            ["ami-3", "ami-4"],
            "one for each architecture; `deprecated_at` in the future is not yet"
        );
        assert_eq!(found.images[1].deprecated, Some(true));
        let created: Vec<String> = found.created.values().map(ToString::to_string).collect();
        assert_eq!(created, ["2026-07-01T00:00:00Z", "2026-02-01T00:00:00Z"]);
        assert_eq!(found.unmatched, ["image ami-5 is for x86_64_mac, which no node runs on"]);
    }

    #[test]
    fn equal_ages_are_told_apart_by_name() {
        let found = of_query(vec![
            image("ami-1", "b", "x86_64", "2026-01-01T00:00:00Z", None),
            image("ami-2", "a", "x86_64", "2026-01-01T00:00:00Z", None),
        ]);
        assert_eq!(ids(&found), ["ami-2"]);
    }

    fn alias(text: &str) -> Vec<Source> {
        let class: EC2NodeClassSpec = serde_json::from_value(serde_json::json!({
            "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [{ "alias": text }] }))
        .unwrap();
        sources(&class, Some(KubernetesVersion::new(1, 34))).unwrap()
    }

    fn instance_type(name: &str) -> InstanceType {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        catalog.instance_types.into_iter().find(|one| one.name == name).unwrap()
    }

    fn looked_up_with(sources: &[Source], parameter: impl Fn(&str) -> LastAnswer<Option<String>>) -> ClassImages {
        let name = |source: &Source| match source {
            Source::Parameter { name, .. } => name.clone(),
            other => panic!("no parameter: {other:?}"),
        };
        let parameters = sources.iter().map(|source| (name(source), parameter(&name(source)))).collect();
        let by_id = |id: &str| {
            let architecture = if id.contains("arm64") { "arm64" } else { "x86_64" };
            LastAnswer::answered(Some(image(id, id, architecture, "2026-01-01T00:00:00Z", None)), now())
        };
        collect(sources, &LookedUp { parameters: &parameters, queries: &BTreeMap::new(), by_id: &by_id }, now())
    }

    /// An id that says what it is of.
    fn id_of(parameter: &str) -> String {
        format!("ami-{}", parameter.replace('/', "-"))
    }

    #[test]
    fn each_type_gets_the_variant_for_it() {
        for (family, of_neuron) in [("al2023@latest", Some("neuron")), ("bottlerocket@latest", Some("x86_64-latest"))] {
            let found = looked_up_with(&alias(family), |name| LastAnswer::answered(Some(id_of(name)), now()));
            assert_eq!((found.unknown.len(), found.unmatched.len()), (0, 0));
            let of =
                |name: &str| image_for(&instance_type(name), &BTreeMap::new(), &found.images).map(|it| it.id.clone());
            let standard = of("m5.large").unwrap();
            assert!(standard.contains("x86_64") && !standard.contains("nvidia"), "{standard}");
            assert!(of("m7g.large").unwrap().contains("arm64"));
            assert!(of("g5.xlarge").unwrap().contains("nvidia"));
            let arm_with_gpu = of("g5g.xlarge").unwrap();
            assert!(arm_with_gpu.contains("nvidia") && arm_with_gpu.contains("arm64"), "{arm_with_gpu}");
            assert!(of("inf2.xlarge").unwrap().contains(of_neuron.unwrap()), "{family}");
            let mut of_amd = instance_type("g5.xlarge");
            of_amd.requirements.insert(GPU_MANUFACTURER.to_owned(), vec!["amd".to_owned()]);
            assert_eq!(image_for(&of_amd, &BTreeMap::new(), &found.images), None);
        }
    }

    #[test]
    fn a_variant_that_does_not_exist_is_not_there_and_one_that_is_denied_is_unknown() {
        let sources = alias("al2023@v20260812");
        let found = looked_up_with(&sources, |name| {
            let exists = !name.contains("neuron");
            LastAnswer::answered(exists.then(|| id_of(name)), now())
        });
        assert_eq!((found.images.len(), found.unknown.len(), found.unmatched.len()), (4, 0, 0));
        let denied = ApiError::of(Action::GetParameters, "AccessDeniedException", "no");
        let found = looked_up_with(&sources, |name| match name.contains("nvidia") {
            true => LastAnswer::failed(denied.clone(), now()),
            false => LastAnswer::answered(Some(id_of(name)), now()),
        });
        let unknown: Vec<&str> = found.unknown.iter().map(|part| part.what.as_str()).collect();
        assert_eq!(unknown, ["al2023@v20260812 amd64 nvidia", "al2023@v20260812 arm64 nvidia"]);
        assert_eq!(found.images.len(), 3);
    }

    #[test]
    fn terms_ask_the_owners_that_they_mean() {
        let class = |terms: serde_json::Value| -> EC2NodeClassSpec {
            let spec = serde_json::json!({ "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
                "amiFamily": "AL2023", "amiSelectorTerms": terms });
            serde_json::from_value(spec).unwrap()
        };
        let sources = sources(
            &class(serde_json::json!([
                { "name": "golden-*" }, { "tags": { "team": "shop", "eks": "*" } }, { "name": "x", "owner": "123456789012" },
                { "id": "ami-1" }, { "ssmParameter": "/golden/image" }
            ])),
            None,
        )
        .unwrap();
        let queries: Vec<&ImageQuery> = sources
            .iter()
            .filter_map(|source| match source {
                Source::Query { query, .. } => Some(query),
                Source::Id(_) | Source::Parameter { .. } => None,
            })
            .collect();
        assert_eq!(queries[0].owners, ["self", "amazon"]);
        assert_eq!(queries[1].owners, Vec::<String>::new());
        assert_eq!(queries[1].filters[1..], [Filter::new("tag-key", ["eks"]), Filter::new("tag:team", ["shop"])]);
        assert_eq!(queries[2].owners, ["123456789012"]);
        assert_eq!(sources[3], Source::Id("ami-1".to_owned()));
        assert!(matches!(&sources[4], Source::Parameter { lifetime: ParameterLifetime::Own, .. }));
    }

    #[test]
    fn an_id_that_is_no_image_is_said() {
        let nothing = |_: &str| LastAnswer::answered(None, now());
        let parameters = BTreeMap::from([
            ("/a".to_owned(), LastAnswer::answered(Some("golden".to_owned()), now())),
            ("/b".to_owned(), LastAnswer::answered(None, now())),
        ]);
        let own = |name: &str| Source::Parameter {
            name: name.to_owned(),
            what: format!("parameter {name}"),
            requirements: vec![Vec::new()],
            lifetime: ParameterLifetime::Own,
        };
        let looked_up = LookedUp { parameters: &parameters, queries: &BTreeMap::new(), by_id: &nothing };
        let found = collect(&[Source::Id("ami-1".to_owned()), own("/a"), own("/b")], &looked_up, now());
        assert_eq!(
            found.unmatched,
            [
                "id ami-1: there is no such image, or it is not for this account",
                "parameter /a holds \"golden\", which is no id of an image",
                "parameter /b does not exist",
            ]
        );
    }
}
