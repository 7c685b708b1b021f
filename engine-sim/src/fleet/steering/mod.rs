//! Who is compared: policies, the predictors they go by, and what calibration gives them.

mod calibration;
mod contender;
mod learned;
mod predictor;
mod rule;

pub use calibration::{Calibration, CalibrationError};
pub use contender::{Contender, ContenderError};
pub use predictor::Predictor;
pub use rule::Rule;
