//! What an overlay makes of a price, exactly.

use std::fmt;
use std::str::FromStr;

use crate::model::HourlyPrice;

/// Another price, or a change of the price. Amounts are billionths: of a dollar, or of the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adjustment {
    Price(i64),
    Difference(i64),
    Share(i64),
}

/// The text is neither a signed number nor a signed percentage.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAnAdjustment;

const BILLION: i64 = 1_000_000_000;

impl Adjustment {
    /// An unsigned number of dollars per hour.
    pub(super) fn price(text: &str) -> Option<Self> {
        billionths(text).map(Self::Price)
    }

    /// The price after it, never below zero.
    pub(super) fn of(self, price: HourlyPrice) -> HourlyPrice {
        let price = price.nanodollars();
        let changed = match self {
            Self::Price(amount) => amount,
            Self::Difference(amount) => price.saturating_add(amount),
            Self::Share(share) => {
                let left = i128::from(BILLION) + i128::from(share);
                let changed = (i128::from(price) * left + i128::from(BILLION / 2)).div_euclid(i128::from(BILLION));
                i64::try_from(changed).unwrap_or(i64::MAX)
            }
        };
        HourlyPrice::from_nanodollars(changed.max(0))
    }
}

impl FromStr for Adjustment {
    type Err = NotAnAdjustment;

    fn from_str(text: &str) -> Result<Self, NotAnAdjustment> {
        let signed = |sign: char| text.strip_prefix(sign);
        let raised = signed('+').map(|amount| (1, amount));
        let (sign, amount) = raised.or_else(|| signed('-').map(|amount| (-1, amount))).ok_or(NotAnAdjustment)?;
        match amount.strip_suffix('%') {
            Some(percent) => billionths(percent).map(|amount| Self::Share(sign * (amount / 100))),
            None => billionths(amount).map(|amount| Self::Difference(sign * amount)),
        }
        .ok_or(NotAnAdjustment)
    }
}

/// A decimal number without sign in billionths; further digits are cut off.
fn billionths(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || (fraction.is_empty() && (whole.is_empty() || text.contains('.'))) {
        return None;
    }
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let whole = if whole.is_empty() { "0" } else { whole };
    whole.parse::<i64>().ok()?.checked_mul(BILLION)?.checked_add(digits.parse().ok()?)
}

impl fmt::Display for Adjustment {
    /// `$0.0500/h`, `-$0.0100/h`, `-27.5 %`
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Price(amount) => write!(formatter, "{}", HourlyPrice::from_nanodollars(*amount)),
            Self::Difference(amount) => {
                let sign = if *amount < 0 { "" } else { "+" };
                write!(formatter, "{sign}{}", HourlyPrice::from_nanodollars(*amount))
            }
            Self::Share(share) => write!(formatter, "{:+} %", *share as f64 / 10_000_000.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, dollars: f64) -> Result<f64, NotAnAdjustment> {
        let price = HourlyPrice::from_dollars(dollars).unwrap_or_default();
        text.parse::<Adjustment>().map(|adjustment| adjustment.of(price).dollars())
    }

    #[test]
    fn prices_change_exactly_and_never_below_zero() {
        assert_eq!(after("+0.5", 0.096), Ok(0.596));
        assert_eq!(after("-1", 0.096), Ok(0.0));
        assert_eq!(after("+10%", 0.1), Ok(0.11));
        assert_eq!(after("-27.5%", 0.2), Ok(0.145));
        assert_eq!(after("-100%", 0.2), Ok(0.0));
        assert_eq!(after("+.5", 0.096), Ok(0.596));
        assert_eq!(after("+200%", 0.2), Ok(0.6));
        assert_eq!(Adjustment::price("0.0425"), Some(Adjustment::Price(42_500_000)));
    }

    #[test]
    fn what_is_no_adjustment_is_refused() {
        for text in ["", "+", "-", "1", "10%", "+%", "+1.", "+.", "+1e3", "--1", "+1 %", "+99999999999999999999"] {
            assert_eq!(text.parse::<Adjustment>(), Err(NotAnAdjustment), "{text}");
        }
        assert_eq!(Adjustment::price("-1"), None);
    }

    #[test]
    fn adjustments_read_like_people_write_them() {
        let text = |text: &str| text.parse::<Adjustment>().unwrap().to_string();
        assert_eq!(text("-27.5%"), "-27.5 %");
        assert_eq!(text("+10%"), "+10 %");
        assert_eq!(text("-0.05"), "-$0.0500/h");
        assert_eq!(text("+0.05"), "+$0.0500/h");
    }
}
