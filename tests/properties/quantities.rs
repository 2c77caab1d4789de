//! Quantities against fractions worked out by hand: what a text says, exactly, whatever its size and sign.

use cutlist::core::model::resources::format_amount;
use cutlist::core::model::{Quantity, Resources};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;

use super::holds;

const RESOURCES: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"];

/// The largest that Kubernetes keeps, in billionths.
const LARGEST: i128 = (i64::MAX as i128) * 1_000_000_000;

fn amounts() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -5_000..5_000_i64,
        (0..50_u32, -9..9_i64).prop_map(|(power, factor)| factor << power),
        Just(i64::MAX),
        Just(i64::MIN + 1),
    ]
}

/// A suffix, and what it multiplies by as numerator and denominator.
fn suffixes() -> impl Strategy<Value = (&'static str, i128, i128)> {
    select(vec![
        ("", 1, 1),
        ("m", 1, 1_000),
        ("u", 1, 1_000_000),
        ("n", 1, 1_000_000_000),
        ("k", 1_000, 1),
        ("M", 1_000_000, 1),
        ("e3", 1_000, 1),
        ("E-2", 1, 100),
        ("Ki", 1 << 10, 1),
        ("Gi", 1 << 30, 1),
        ("Ti", 1 << 40, 1),
        ("E", 1_000_000_000_000_000_000, 1),
        ("Ei", 1 << 60, 1),
    ])
}

#[test]
fn an_amount_that_is_written_reads_back_as_the_same() {
    holds((select(RESOURCES.to_vec()), amounts()), |(name, amount)| {
        let text = format_amount(name, amount);
        let read = text.parse::<Quantity>().map_err(|error| error.to_string())?;
        if Resources::amount(name, read) == amount { Ok(()) } else { Err(format!("{amount} of {name} became {text}")) }
    });
}

#[test]
fn a_text_means_the_fraction_it_says_rounded_up() {
    let number = (any::<bool>(), 0..2_000_000_000_i64, 0..4_u32);
    holds((number, suffixes()), |((negative, digits, decimals), (suffix, numerator, denominator))| {
        let whole = digits / 10_i64.pow(decimals);
        let fraction = digits % 10_i64.pow(decimals);
        let point =
            if decimals == 0 { String::new() } else { format!(".{fraction:0width$}", width = decimals as usize) };
        let text = format!("{}{whole}{point}{suffix}", if negative { "-" } else { "" });
        // Billionths, away from zero, as Kubernetes rounds.
        let divisor = denominator * 10_i128.pow(decimals);
        let dividend = i128::from(digits) * numerator * 1_000_000_000;
        let nanos = (dividend + divisor - 1) / divisor;
        let read = match text.parse::<Quantity>() {
            Ok(read) => read,
            Err(_) if nanos > LARGEST => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let nanos = if negative { -nanos } else { nanos };
        let up = |unit: i128| i64::try_from(nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0));
        let by_hand = (
            up(1_000_000_000).unwrap_or(i64::MAX),
            up(1_000_000).unwrap_or(if negative { i64::MIN } else { i64::MAX }),
        );
        if (read.units(), read.milli()) == by_hand && read.is_negative() == (nanos < 0) {
            Ok(())
        } else {
            Err(format!("{text} is {} and {} thousandths, by hand {by_hand:?}", read.units(), read.milli()))
        }
    });
}

#[test]
fn larger_texts_are_larger_quantities() {
    holds((amounts(), amounts(), select(vec!["", "m", "k", "Ki"])), |(one, two, suffix)| {
        let read = |amount: i64| format!("{amount}{suffix}").parse::<Quantity>();
        match (read(one), read(two)) {
            (Ok(first), Ok(second)) if first.cmp(&second) != one.cmp(&two) => Err(format!("{one} and {two} {suffix}")),
            _ => Ok(()),
        }
    });
}

#[test]
fn no_text_is_too_strange_to_refuse() {
    holds("\\PC{0,40}|[-+.0-9eEinumkKMGTP]{0,60}", |text| {
        // Reading ends, in a value or an error that quotes the text.
        match text.parse::<Quantity>() {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains(&text) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    });
}

fn resources() -> impl Strategy<Value = Resources> {
    vec((select(RESOURCES.to_vec()), amounts()), 0..6)
        .prop_map(|amounts| amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect())
}

#[test]
fn sums_and_differences_are_exact_as_long_as_they_can_be_kept() {
    holds((resources(), resources()), |(one, two)| {
        let (mut sum, mut difference, mut maximum) = (one.clone(), one.clone(), one.clone());
        sum.add(&two);
        difference.subtract(&two);
        maximum.maximum(&two);
        for name in RESOURCES {
            let (a, b) = (i128::from(one.get(name)), i128::from(two.get(name)));
            let kept = |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
            let larger = match (one.contains(name), two.contains(name)) {
                (true, true) => a.max(b),
                (true, false) => a,
                _ => b,
            };
            let ours = (sum.get(name), difference.get(name), maximum.get(name));
            if ours != (kept(a + b), kept(a - b), kept(larger)) {
                return Err(format!("{name}: {ours:?} of {a} and {b}"));
            }
        }
        let fits = RESOURCES.iter().all(|name| one.get(name) <= 0 || one.get(name) <= two.get(name));
        if one.fits_in(&two) == fits { Ok(()) } else { Err(format!("{one:?} fits in {two:?}: {}", one.fits_in(&two))) }
    });
}

#[test]
fn resources_survive_being_written_as_json() {
    holds(resources(), |resources| {
        let text = serde_json::to_string(&resources).map_err(|error| error.to_string())?;
        let read: Resources = serde_json::from_str(&text).map_err(|error| format!("{text}: {error}"))?;
        if read == resources { Ok(()) } else { Err(text) }
    });
}
