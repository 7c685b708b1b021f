//! Arrival times.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::super::chance::{exponential, gamma};
use super::WorkloadError;

/// When sessions start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Process {
    /// Independent arrivals.
    #[default]
    Poisson,
    /// Independent gaps of a gamma distribution; their coefficient of variation is 1 / sqrt(shape): below 1 bursty, 1 Poisson, above regular.
    Gamma {
        /// Shape, above 0.
        shape: f64,
    },
    /// Two Poisson rates in turn, each for an exponential time: the long-run rate is the workload's.
    Bursts {
        /// High rate divided by low rate, at least 1.
        factor: f64,
        /// Mean seconds of a burst.
        #[serde(rename = "burstS")]
        burst_s: f64,
        /// Mean seconds between bursts.
        #[serde(rename = "calmS")]
        calm_s: f64,
    },
    /// rate x (1 + swing x sin(2 pi t / period)): starts at the mean, rising.
    DayNight {
        /// Seconds of a day.
        #[serde(rename = "periodS")]
        period_s: f64,
        /// 0 (flat) to 1 (nothing at night).
        swing: f64,
    },
}

impl Process {
    /// Times in [0, duration), ascending, at a long-run rate of `rate` a second.
    pub(super) fn times(
        &self,
        rate: f64,
        duration: f64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Result<Vec<f64>, WorkloadError> {
        self.check()?;
        let mut times = Vec::new();
        let mut now = 0.0;
        match *self {
            Self::Poisson => loop {
                now += exponential(rng, 1.0 / rate);
                if now >= duration {
                    break;
                }
                times.push(now);
            },
            Self::Gamma { shape } => loop {
                now += gamma(rng, shape, 1.0 / rate);
                if now >= duration {
                    break;
                }
                times.push(now);
            },
            Self::Bursts {
                factor,
                burst_s,
                calm_s,
            } => {
                let low = rate * (burst_s + calm_s) / (factor * burst_s + calm_s);
                // Starts in either state as often as it is in it.
                let mut burst = rng.gen_bool(burst_s / (burst_s + calm_s));
                while now < duration {
                    let end = now + exponential(rng, if burst { burst_s } else { calm_s });
                    let rate = if burst { low * factor } else { low };
                    loop {
                        now += exponential(rng, 1.0 / rate);
                        if now >= end.min(duration) {
                            break;
                        }
                        times.push(now);
                    }
                    // Memoryless: the draw that went past the end is dropped.
                    now = end;
                    burst = !burst;
                }
            }
            Self::DayNight { period_s, swing } => loop {
                now += exponential(rng, 1.0 / (rate * (1.0 + swing)));
                if now >= duration {
                    break;
                }
                let here = 1.0 + swing * (std::f64::consts::TAU * now / period_s).sin();
                if rng.r#gen::<f64>() * (1.0 + swing) < here {
                    times.push(now);
                }
            },
        }
        Ok(times)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let within = |name: &str, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(WorkloadError(format!("{name} must be {low} to {high}, got {value}")))
            }
        };
        match *self {
            Self::Poisson => Ok(()),
            Self::Gamma { shape } => within("shape", shape, 0.01, 1e4),
            Self::Bursts {
                factor,
                burst_s,
                calm_s,
            } => {
                within("factor", factor, 1.0, 1e4)?;
                within("burstS", burst_s, 1e-3, 1e9)?;
                within("calmS", calm_s, 1e-3, 1e9)
            }
            Self::DayNight { period_s, swing } => {
                within("periodS", period_s, 1e-3, 1e9)?;
                within("swing", swing, 0.0, 1.0)
            }
        }
    }
}
