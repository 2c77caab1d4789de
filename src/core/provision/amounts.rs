//! Amounts of resources for people.

use crate::model::resources::{CPU, is_in_bytes};

const MEBIBYTE: i64 = 1 << 20;

/// An amount for people: cores with at most three decimals, bytes in GiB with one, counts as they are.
pub fn amount(resource: &str, amount: i64) -> String {
    match resource {
        CPU => {
            let text = format!("{}.{:03}", amount / 1000, (amount % 1000).abs());
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ if is_in_bytes(resource) && amount != 0 => {
            let tenths = (i128::from(amount) * 10 + (1 << 29)) >> 30;
            if (-MEBIBYTE..MEBIBYTE).contains(&amount) {
                if amount % 1024 == 0 { format!("{}Ki", amount / 1024) } else { amount.to_string() }
            } else if tenths.abs() < 10 {
                format!("{}Mi", amount / MEBIBYTE)
            } else {
                format!("{}.{}Gi", tenths / 10, tenths % 10).replace(".0Gi", "Gi")
            }
        }
        _ => amount.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resources::MEMORY;

    #[test]
    fn amounts_read_like_people_write_them() {
        assert_eq!(amount(CPU, 10_000), "10");
        assert_eq!(amount(CPU, 7_910), "7.91");
        assert_eq!(amount(CPU, 150), "0.15");
        assert_eq!(amount(MEMORY, 512 << 20), "512Mi");
        assert_eq!(amount(MEMORY, 14_162 << 20), "13.8Gi");
        assert_eq!(amount(MEMORY, 2 << 30), "2Gi");
        assert_eq!(amount("ephemeral-storage", 400 << 30), "400Gi");
        assert_eq!(amount("hugepages-2Mi", 4 << 30), "4Gi");
        assert_eq!(amount("hugepages-1Gi", 1 << 30), "1Gi");
        assert_eq!((amount("hugepages-2Mi", 2 << 20), amount("hugepages-2Mi", 0)), ("2Mi".to_owned(), "0".to_owned()));
        assert_eq!(
            (amount(MEMORY, 0), amount(MEMORY, 1 << 16), amount(MEMORY, 77)),
            ("0".into(), "64Ki".into(), "77".into())
        );
        assert_eq!(amount("nvidia.com/gpu", 4), "4");
        assert_eq!(amount("vpc.amazonaws.com/pod-eni", 1), "1");
    }
}
