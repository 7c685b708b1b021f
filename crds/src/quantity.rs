//! Decimal and duration strings, as Kubernetes API conventions ask for them.

use std::time::Duration;

/// Pattern of a non-negative decimal string, such as `"0.15"`.
pub const DECIMAL_PATTERN: &str = r"^[0-9]{1,6}(\.[0-9]{1,6})?$";
/// Pattern of a Go-style duration string, such as `"1m30s"`.
pub const DURATION_PATTERN: &str = r"^([0-9]{1,9}(\.[0-9]{1,6})?(ms|s|m|h))+$";

/// Why a quantity string was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// Not a decimal.
    #[error("{0:?} is not a decimal such as \"0.15\"")]
    Decimal(String),
    /// Not a duration.
    #[error("{0:?} is not a duration such as \"90s\" or \"1m30s\"")]
    Duration(String),
}

/// Parses a decimal string of the API.
pub fn decimal(text: &str) -> Result<f64, QuantityError> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<f64>()
        .ok()
        .filter(|v| plain && v.is_finite())
        .ok_or_else(|| QuantityError::Decimal(text.to_owned()))
}

/// Parses a Go-style duration string of the API: units `ms`, `s`, `m`, `h`.
pub fn duration(text: &str) -> Result<Duration, QuantityError> {
    let refuse = || QuantityError::Duration(text.to_owned());
    let mut rest = text;
    let mut seconds = 0.0;
    if rest.is_empty() {
        return Err(refuse());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(refuse)?;
        let value = decimal(&rest[..digits]).map_err(|_| refuse())?;
        rest = &rest[digits..];
        let (scale, length) = match rest.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b's', ..] => (1.0, 1),
            [b'm', ..] => (60.0, 1),
            [b'h', ..] => (3600.0, 1),
            _ => return Err(refuse()),
        };
        seconds += value * scale;
        rest = &rest[length..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_follow_go() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "5", "s", "1d", "-1s", "1s ", "1..2s", "NaNs"] {
            assert!(duration(bad).is_err(), "{bad:?} must be refused");
        }
    }

    #[test]
    fn decimals_are_plain() {
        assert_eq!(decimal("0.15"), Ok(0.15));
        for bad in ["", "-1", "1e3", "inf", "NaN", "+1", "."] {
            assert!(decimal(bad).is_err(), "{bad:?} must be refused");
        }
    }
}
