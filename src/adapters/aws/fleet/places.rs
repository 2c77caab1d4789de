//! Into which subnets a call may launch, and how many: EC2 chooses among the zones of a call, so there must be addresses wherever it puts
//! its instances.

use std::collections::BTreeMap;

/// The best subnet of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchPlace {
    pub zone: String,
    pub subnet: String,
    /// Nodes that it has addresses for, those of their pods among them; `None` where nobody says.
    pub fits: Option<u32>,
}

/// Where one call may launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// By zone.
    pub subnets: BTreeMap<String, String>,
    /// Instances that it may ask for.
    pub most: u32,
}

/// The zones in which all that lack an instance fit. Where there is none, those that take at least half as many as the largest, and no more
/// at once than the smallest of these takes: what is left then is asked for once it is known what is left in them.
pub fn places(found: Vec<LaunchPlace>, lacking: u32) -> Places {
    let fits = |place: &LaunchPlace| place.fits.unwrap_or(u32::MAX);
    let largest = found.iter().map(fits).max().unwrap_or_default();
    let least = if largest >= lacking { lacking } else { largest.div_ceil(2) };
    let kept: Vec<LaunchPlace> = found.into_iter().filter(|place| fits(place) >= least.max(1)).collect();
    let most = kept.iter().map(fits).min().unwrap_or_default().min(lacking);
    Places { subnets: kept.into_iter().map(|place| (place.zone, place.subnet)).collect(), most }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fits: &[Option<u32>], lacking: u32) -> (Vec<String>, u32) {
        let place = |(index, fits): (usize, &Option<u32>)| LaunchPlace {
            zone: format!("zone-{index}"),
            subnet: format!("subnet-{index}"),
            fits: *fits,
        };
        let found = places(fits.iter().enumerate().map(place).collect(), lacking);
        (found.subnets.into_values().collect(), found.most)
    }

    #[test]
    fn wherever_ec2_puts_them_there_is_room() {
        assert_eq!(of(&[Some(1), Some(100)], 10), (vec!["subnet-1".to_owned()], 10));
        assert_eq!(of(&[Some(20), Some(10)], 10), (vec!["subnet-0".to_owned(), "subnet-1".to_owned()], 10));
        assert_eq!(of(&[Some(0), None], 10), (vec!["subnet-1".to_owned()], 10));
    }

    #[test]
    fn what_fits_nowhere_at_once_comes_in_parts() {
        assert_eq!(of(&[Some(4), Some(8), Some(3)], 10), (vec!["subnet-0".to_owned(), "subnet-1".to_owned()], 4));
        assert_eq!(of(&[Some(1)], 10), (vec!["subnet-0".to_owned()], 1));
        assert_eq!(of(&[Some(0)], 10), (vec![], 0));
        assert_eq!(of(&[], 10), (vec![], 0));
    }
}
