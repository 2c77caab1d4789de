//! How time grows with size: the slope of a line through the logarithms.

#![cfg(test)]

/// The exponent `e` of the power `size^e` that fits the seconds best, by least squares. `None` for fewer than two points.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 2 {
        return None;
    }
    let logarithms: Vec<(f64, f64)> = points.iter().map(|(size, seconds)| (size.ln(), seconds.ln())).collect();
    let count = f64::from(u32::try_from(points.len()).unwrap());
    let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
    let (mean_size, mean_seconds) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = logarithms.iter().map(|(x, y)| (x - mean_size) * (y - mean_seconds)).sum();
    let variance: f64 = logarithms.iter().map(|(x, _)| (x - mean_size).powi(2)).sum();
    Some(covariance / variance)
}
