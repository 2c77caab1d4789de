//! The figures keep their bounds.

use super::figures::{Figure, all, thousand_claims_with_losses_and_kills};

fn assert_met(figures: Vec<Figure>) {
    let missed = figures.into_iter().filter(|figure| !figure.is_met);
    let missed: Vec<String> = missed
        .map(|Figure { scenario, target, found, .. }| format!("{scenario}: {found}, where it should be {target}"))
        .collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn figures_keep_their_bounds() {
    assert_met(all(300));
}

#[test]
fn no_seed_loses_or_doubles_an_instance() {
    for seed in 0..4 {
        println!("seed {seed}");
        assert_met(vec![thousand_claims_with_losses_and_kills(seed)]);
    }
}
