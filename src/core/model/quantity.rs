//! Kubernetes quantities, exact: `100m`, `1.5Gi`, `1e3`, `12E`.
//! Source: `k8s.io/apimachinery/pkg/api/resource`, quantity.go.

use std::str::FromStr;

const NANO: i128 = 1_000_000_000;

/// An exact amount in billionths of the base unit (core, byte, piece).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("`{0}` is not a quantity: write a number with an optional suffix, such as `500m`, `2`, `1.5Gi`")]
    Malformed(String),
    #[error("`{0}` is larger than a quantity can be (2^63 - 1)")]
    TooLarge(String),
}

impl Quantity {
    pub const ZERO: Self = Self(0);

    /// Whole units, rounded up.
    pub fn units(self) -> i64 {
        saturate(div_ceil(self.0, NANO))
    }

    /// Thousandths, rounded up.
    pub fn milli(self) -> i64 {
        saturate(div_ceil(self.0, NANO / 1000))
    }

    pub fn is_negative(self) -> bool {
        self.0 < 0
    }
}

fn div_ceil(value: i128, divisor: i128) -> i128 {
    value.div_euclid(divisor) + i128::from(value.rem_euclid(divisor) != 0)
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Smaller than a billionth rounds up, as Kubernetes does.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || QuantityError::Malformed(text.to_owned());
        let too_large = || QuantityError::TooLarge(text.to_owned());
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        let number_length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, suffix) = rest.split_at(number_length);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(malformed());
        }
        let scale = Scale::parse(suffix).ok_or_else(malformed)?;
        let mut digits: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits =
                digits.checked_mul(10).and_then(|d| d.checked_add(i128::from(digit - b'0'))).ok_or_else(too_large)?;
        }
        let decimals = i32::try_from(fraction.len()).map_err(|_| malformed())?;
        let nanos = scale
            .nanos(digits, decimals)
            .filter(|nanos| *nanos <= i128::from(i64::MAX) * NANO)
            .ok_or_else(too_large)?;
        Ok(Self(if negative { -nanos } else { nanos }))
    }
}

/// What a suffix multiplies by: two to a power, or ten to a power.
enum Scale {
    Binary(u32),
    Decimal(i32),
}

impl Scale {
    fn parse(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            exponent => {
                let digits = exponent.strip_prefix(['e', 'E'])?;
                let unsigned = digits.strip_prefix(['+', '-']).unwrap_or(digits);
                if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                // Beyond a thousand every number is zero or too large; the clamp keeps the arithmetic small.
                let value = digits.parse::<i32>().unwrap_or(if digits.starts_with('-') { -1000 } else { 1000 });
                Self::Decimal(value.clamp(-1000, 1000))
            }
        })
    }

    /// `digits * 10^-decimals * scale` in billionths, rounded up; `None` on overflow.
    fn nanos(&self, digits: i128, decimals: i32) -> Option<i128> {
        let (value, exponent) = match self {
            Self::Binary(power) => (digits.checked_mul(1_i128 << power)?, 9 - decimals),
            Self::Decimal(power) => (digits, power + 9 - decimals),
        };
        if value == 0 {
            return Some(0);
        }
        let magnitude = 10_i128.checked_pow(exponent.unsigned_abs());
        if exponent >= 0 {
            value.checked_mul(magnitude?)
        } else {
            Some(magnitude.map_or(1, |divisor| div_ceil(value, divisor)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milli(text: &str) -> i64 {
        text.parse::<Quantity>().unwrap().milli()
    }

    #[test]
    fn reads_every_suffix() {
        assert_eq!(milli("100m"), 100);
        assert_eq!(milli("1.5"), 1500);
        assert_eq!(milli(".5"), 500);
        assert_eq!(milli("1e3"), 1_000_000);
        assert_eq!(milli("2E-1"), 200);
        assert_eq!("1.5Gi".parse::<Quantity>().unwrap().units(), 1_610_612_736);
        assert_eq!("1G".parse::<Quantity>().unwrap().units(), 1_000_000_000);
        assert_eq!("8E".parse::<Quantity>().unwrap().units(), 8_000_000_000_000_000_000);
        assert_eq!("1n".parse::<Quantity>().unwrap().milli(), 1, "rounds up");
    }

    #[test]
    fn says_what_is_wrong_and_never_panics() {
        for text in ["", "-", ".", "1.2.3", "1 Gi", "1gi", "e3", "1e", "1e+", "Gi", "NaN", "1é"] {
            assert!(matches!(text.parse::<Quantity>(), Err(QuantityError::Malformed(_))), "{text}");
        }
        for text in ["1e30", "99999999999999999999999999999999999999999999", "16Ei", "1e999999999999999999999"] {
            assert!(matches!(text.parse::<Quantity>(), Err(QuantityError::TooLarge(_))), "{text}");
        }
        assert_eq!("1e-999999999999".parse::<Quantity>().unwrap().milli(), 1);
        assert_eq!("0e99999".parse::<Quantity>().unwrap(), Quantity::ZERO);
    }
}
