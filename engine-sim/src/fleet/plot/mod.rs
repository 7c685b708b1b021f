//! Figures as SVG, written by hand: lines with intervals, and groups of bars. No fonts or scripts are needed to look at them.

mod axis;
mod bars;
mod canvas;
mod lines;

pub use bars::{Bars, Group};
pub use lines::{Lines, Series};
