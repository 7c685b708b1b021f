//! A linear axis with round ticks.

/// Maps values to a stretch of the picture.
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Covers `values` with a little room, drawn from `from` to `to`.
    pub(super) fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let finite = values.filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let room = if high > low { (high - low) * 0.05 } else { 1.0 };
        Self {
            low: low - room,
            high: high + room,
            from,
            to,
        }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Values of round ticks: 1, 2 or 5 times a power of ten apart, five or so.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|s| *s >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|i| i as f64 * step).collect()
    }
}

/// A tick's label: no more digits than needed.
pub(super) fn label(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::over([-13.0, 6.0].into_iter(), 0.0, 100.0);
        assert_eq!(axis.ticks(), [-10.0, -5.0, 0.0, 5.0]);
        assert!(axis.at(-13.0) > 0.0 && axis.at(6.0) < 100.0);
        assert_eq!([label(0.5), label(20.0), label(-0.0)], ["0.5", "20", "0"]);
    }
}
