//! Values of arguments that are more than a number or a name.

use crate::fleet::simulate::{Change, ScriptLine};
use crate::fleet::workload::{MixPoint, OutputLengths, Process};

/// A finite number that is not negative.
pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "a number is needed".to_owned())?;
    if (0.0..=1e12).contains(&value) {
        Ok(value)
    } else {
        Err("it must be 0 to 1e12".to_owned())
    }
}

/// A finite number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match not_negative(text)? {
        0.0 => Err("it must be above 0".to_owned()),
        value => Ok(value),
    }
}

/// A share, 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let value = not_negative(text)?;
    if value <= 1.0 {
        Ok(value)
    } else {
        Err("it must be 0 to 1".to_owned())
    }
}

/// `AT:stop:WORKER`, `AT:drain:WORKER`, `AT:start:COUNT`, `AT:scale:WORKERS`; AT in seconds.
pub(super) fn fault(text: &str) -> Result<ScriptLine, String> {
    let form = "it must be SECONDS:stop:WORKER, SECONDS:drain:WORKER, SECONDS:start:COUNT or SECONDS:scale:WORKERS";
    let parts: Vec<&str> = text.split(':').collect();
    let [at, what, number] = parts[..] else {
        return Err(form.to_owned());
    };
    let at_s = not_negative(at).map_err(|e| format!("seconds {at:?}: {e}"))?;
    let number: u32 = number.parse().map_err(|_| format!("{number:?} is no whole number"))?;
    if number > 4096 {
        return Err("at most 4096 workers".to_owned());
    }
    let change = match what {
        "stop" => Change::Lose(number),
        "drain" => Change::Drain(number),
        "start" => Change::Start(number),
        "scale" => Change::Scale(number),
        _ => return Err(form.to_owned()),
    };
    Ok(ScriptLine { at_s, change })
}

/// `poisson`, `gamma:SHAPE`, `bursts:FACTOR:BURST_S:CALM_S`, `day-night:PERIOD_S:SWING`.
pub(super) fn process(text: &str) -> Result<Process, String> {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    let numbers: Vec<f64> = parts
        .map(|p| not_negative(p).map_err(|e| format!("{p:?}: {e}")))
        .collect::<Result<_, _>>()?;
    match (kind, &numbers[..]) {
        ("poisson", []) => Ok(Process::Poisson),
        ("gamma", [shape]) => Ok(Process::Gamma { shape: *shape }),
        ("bursts", [factor, burst_s, calm_s]) => Ok(Process::Bursts {
            factor: *factor,
            burst_s: *burst_s,
            calm_s: *calm_s,
        }),
        ("day-night", [period_s, swing]) => Ok(Process::DayNight {
            period_s: *period_s,
            swing: *swing,
        }),
        _ => {
            Err("it must be poisson, gamma:SHAPE, bursts:FACTOR:BURST_S:CALM_S or day-night:PERIOD_S:SWING".to_owned())
        }
    }
}

/// A number of tokens, 0 or `recorded` for as many as were recorded, or `lognormal:MEDIAN:SIGMA:MAX`.
pub(super) fn output(text: &str) -> Result<OutputLengths, String> {
    let form =
        "it must be a number of tokens, 0 or recorded for as many as are recorded, or lognormal:MEDIAN:SIGMA:MAX";
    let bad = || form.to_owned();
    if let Some(rest) = text.strip_prefix("lognormal:") {
        let parts: Vec<&str> = rest.split(':').collect();
        let [median, sigma, max] = parts[..] else {
            return Err(bad());
        };
        return Ok(OutputLengths::LogNormal {
            median: positive(median).map_err(|e| format!("median {median:?}: {e}"))?,
            sigma: not_negative(sigma).map_err(|e| format!("sigma {sigma:?}: {e}"))?,
            max: max.parse().map_err(|_| bad())?,
        });
    }
    match text {
        "recorded" | "0" => Ok(OutputLengths::Recorded),
        tokens => match tokens.parse() {
            Ok(tokens) if tokens <= 100_000 => Ok(OutputLengths::Fixed { tokens }),
            _ => Err(format!("{form}; at most 100000")),
        },
    }
}

/// `[AT:]NAME=WEIGHT,...`; the name `blended` sets the share of prompts that blend two domains.
pub(super) fn mix(text: &str) -> Result<MixPoint, String> {
    let (time_s, list) = match text.split_once(':') {
        Some((at, list)) => (not_negative(at).map_err(|e| format!("seconds {at:?}: {e}"))?, list),
        None => (0.0, text),
    };
    let mut point = MixPoint {
        time_s,
        ..MixPoint::default()
    };
    for (name, weight) in pairs(list)? {
        if name == "blended" {
            point.blended = weight;
        } else if point.weights.insert(name.clone(), weight).is_some() {
            return Err(format!("domain {name:?} is named twice"));
        }
    }
    if point.weights.values().all(|w| *w <= 0.0) {
        return Err("at least one domain needs a weight above 0".to_owned());
    }
    Ok(point)
}

/// `NAME=NUMBER,...`.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, f64)>, String> {
    let pair = |part: &str| {
        let (name, number) = part
            .split_once('=')
            .ok_or_else(|| format!("{part:?} must be NAME=NUMBER"))?;
        let number = not_negative(number).map_err(|e| format!("{part:?}: {e}"))?;
        Ok((name.trim().to_owned(), number))
    };
    text.split(',').map(pair).collect()
}

/// `SHORTEST-LONGEST`, or one number for both.
pub(super) fn range(text: &str) -> Result<(u32, u32), String> {
    let (short, long) = text.split_once('-').unwrap_or((text, text));
    match (short.parse(), long.parse()) {
        (Ok(short), Ok(long)) if (1..=long).contains(&short) && long <= 65_535 => Ok((short, long)),
        _ => Err("it must be SHORTEST-LONGEST, 1 to 65535".to_owned()),
    }
}

/// `BATCH=EXPERTS`.
pub(super) fn distinct(text: &str) -> Result<(u32, f64), String> {
    let (batch, experts) = text.split_once('=').ok_or("it must be BATCH=EXPERTS")?;
    let batch = batch.parse().map_err(|_| format!("{batch:?} is no whole number"))?;
    Ok((batch, positive(experts)?))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
