//! Which nodes may become one: those whose pods can be bought for in one NodePool, whatever pools the nodes are of.

use std::collections::BTreeMap;

use crate::scheduler::Engine;
use crate::scheduler::template::TemplateIndex;

use super::Source;

/// By source, the number of those that may be one node with it, or with others that may: pools that overlap hang together.
/// O(sources x templates).
pub(super) fn partners(engine: &Engine<'_, '_>, sources: &[Source<'_>]) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..sources.len()).collect();
    let mut first_of: BTreeMap<TemplateIndex, usize> = BTreeMap::new();
    for (source, Source { candidate, .. }) in sources.iter().enumerate() {
        let mut templates: Vec<TemplateIndex> = Vec::new();
        for class in candidate.displaced().filter_map(|pod| engine.problem.class_of_pod[pod]) {
            let bought_of = |template: &TemplateIndex| {
                let mut variants = engine.problem.classes[class].variants.iter();
                !engine.problem.templates[*template].is_static()
                    && variants.any(|variant| engine.problem.purchasable(*variant, *template).is_ok())
            };
            let new = engine.problem.templates.indices().filter(|it| !templates.contains(it));
            let new: Vec<TemplateIndex> = new.filter(bought_of).collect();
            templates.extend(new);
        }
        for template in templates {
            let other = *first_of.entry(template).or_insert(source);
            let (one, two) = (root(&parts, source), root(&parts, other));
            parts[one.max(two)] = one.min(two);
        }
    }
    (0..sources.len()).map(|source| root(&parts, source)).collect()
}

fn root(parts: &[usize], mut source: usize) -> usize {
    while parts[source] != source {
        source = parts[source];
    }
    source
}

/// Sources in groups of at most so many that may be one node: first of one pool each, then what is left of several.
pub(super) fn sets<'c>(
    sources: impl Iterator<Item = usize>,
    pool: impl Fn(usize) -> &'c str,
    partners: &[usize],
    most: usize,
) -> Vec<Vec<usize>> {
    let mut by_pool: BTreeMap<(&str, usize), Vec<usize>> = BTreeMap::new();
    for source in sources {
        by_pool.entry((pool(source), partners[source])).or_default().push(source);
    }
    let mut sets: Vec<Vec<usize>> = Vec::new();
    let mut left: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for ((_, partners), of_pool) in by_pool {
        let whole = of_pool.chunks_exact(most.max(1));
        left.entry(partners).or_default().extend(whole.remainder());
        sets.extend(whole.map(<[usize]>::to_vec));
    }
    for mut of_pools in left.into_values() {
        of_pools.sort_unstable();
        sets.extend(of_pools.chunks(most.max(1)).map(<[usize]>::to_vec));
    }
    sets
}
