//! Tests of the drift controller's pure parts.

mod gates;
mod verdicts;
mod windows;
