//! Money as integers: sums and comparisons of prices are exact, so no move is ever made for a rounding error.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANODOLLARS_PER_DOLLAR: i64 = 1_000_000_000;

/// Hours of an average month as the trade counts them: 8,760 / 12.
const HOURS_PER_MONTH: i64 = 730;

/// US dollars per hour, exact to a billionth (published prices have at most seven decimals). Serialised as a JSON number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HourlyPrice(i64);

impl HourlyPrice {
    pub const ZERO: Self = Self(0);
    /// More than any fleet costs; sums saturate here.
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_nanodollars(nanodollars: i64) -> Self {
        Self(nanodollars)
    }

    pub const fn nanodollars(self) -> i64 {
        self.0
    }

    /// `None` when the number is not finite, negative, or beyond nine billion dollars.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        Self::from_signed_dollars(dollars).filter(|price| *price >= Self::ZERO)
    }

    /// The same for differences of prices, which may be negative.
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of i64, checked just before")]
    fn from_signed_dollars(dollars: f64) -> Option<Self> {
        let nanodollars = (dollars * NANODOLLARS_PER_DOLLAR as f64).round();
        (nanodollars.is_finite() && nanodollars.abs() < 9.0e18).then_some(Self(nanodollars as i64))
    }

    pub fn dollars(self) -> f64 {
        self.0 as f64 / NANODOLLARS_PER_DOLLAR as f64
    }

    /// Dollars for a month of 730 hours.
    pub fn dollars_per_month(self) -> f64 {
        self.dollars() * HOURS_PER_MONTH as f64
    }

    /// This price times `count`, saturating.
    pub fn times(self, count: usize) -> Self {
        Self(self.0.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for HourlyPrice {
    /// `$0.4515/h`, with a sign when negative.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let text = format!("{:.4}", self.dollars().abs());
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0000"));
        write!(formatter, "{sign}${}.{decimals}/h", thousands(whole))
    }
}

/// Digits in groups of three.
pub fn thousands(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

impl Add for HourlyPrice {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for HourlyPrice {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for HourlyPrice {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl AddAssign for HourlyPrice {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for HourlyPrice {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for HourlyPrice {
    fn sum<I: Iterator<Item = Self>>(prices: I) -> Self {
        prices.fold(Self::ZERO, Add::add)
    }
}

impl Serialize for HourlyPrice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for HourlyPrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_signed_dollars(dollars)
            .ok_or_else(|| serde::de::Error::custom("a price must be a finite number of dollars per hour"))
    }
}

impl JsonSchema for HourlyPrice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HourlyPrice".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "description": "US dollars per hour" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_that_floating_point_gets_wrong() {
        let price = |dollars: f64| HourlyPrice::from_dollars(dollars).unwrap();
        assert_eq!(price(0.544) + price(1.088), price(1.632));
    }

    #[test]
    fn large_sums_can_be_read() {
        let text = |dollars: f64| HourlyPrice::from_dollars(dollars).unwrap().to_string();
        assert_eq!(
            [0.4515, 999.5, 1_234.5, 1.0e9].map(text),
            ["$0.4515/h", "$999.5000/h", "$1,234.5000/h", "$1,000,000,000.0000/h"]
        );
    }

    #[test]
    fn refuses_what_is_no_price() {
        for dollars in [f64::NAN, f64::INFINITY, -0.1, 1.0e10] {
            assert_eq!(HourlyPrice::from_dollars(dollars), None);
        }
    }

    #[test]
    fn survives_json() {
        let price = HourlyPrice::from_dollars(0.0052).unwrap();
        let text = serde_json::to_string(&price).unwrap();
        assert_eq!(text, "0.0052");
        assert_eq!(serde_json::from_str::<HourlyPrice>(&text).unwrap(), price);
    }
}
