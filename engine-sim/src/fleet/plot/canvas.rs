//! SVG elements.

use std::fmt::Write;

use super::axis::{Axis, label};

/// Colours that people with colour blindness tell apart (Okabe and Ito).
const COLOURS: [&str; 9] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a00", "#999999",
];

pub(super) const WIDTH: f64 = 760.0;
/// Without a legend that needs more.
const HEIGHT: f64 = 420.0;
pub(super) const LEFT: f64 = 70.0;
pub(super) const RIGHT: f64 = 550.0;
pub(super) const TOP: f64 = 40.0;
pub(super) const BOTTOM: f64 = 360.0;

pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

pub(super) struct Canvas {
    out: String,
}

impl Canvas {
    /// A picture with a title, high enough for so many entries of the legend.
    pub(super) fn new(title: &str, entries: usize) -> Self {
        let height = HEIGHT.max(entry(entries));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        let middle = LEFT.midpoint(RIGHT);
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"22\" text-anchor=\"middle\" font-size=\"14\">{}</text>",
            escape(title)
        );
        Self { out }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], stroke: &str) {
        let text: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"/>",
            text.join(" ")
        );
    }

    pub(super) fn dot(&mut self, at: (f64, f64), fill: &str) {
        let _ = writeln!(
            self.out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{fill}\"/>",
            at.0, at.1
        );
    }

    pub(super) fn bar(&mut self, x: f64, width: f64, from: f64, to: f64, fill: &str) {
        let (top, height) = (from.min(to), (from - to).abs());
        let _ = writeln!(
            self.out,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// The vertical axis with grid lines and its name.
    pub(super) fn vertical(&mut self, axis: &Axis, name: &str) {
        for tick in axis.ticks() {
            let y = axis.at(tick);
            self.line(
                (LEFT, y),
                (RIGHT, y),
                if tick == 0.0 { "#555555" } else { "#dddddd" },
                1.0,
            );
            self.text((LEFT - 6.0, y + 4.0), "end", &label(tick));
        }
        self.line((LEFT, TOP), (LEFT, BOTTOM), "#555555", 1.0);
        let middle = TOP.midpoint(BOTTOM);
        let _ = writeln!(
            self.out,
            "<text transform=\"translate(18 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(name)
        );
    }

    /// The horizontal axis' name.
    pub(super) fn horizontal_name(&mut self, name: &str) {
        self.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "#555555", 1.0);
        self.text((LEFT.midpoint(RIGHT), BOTTOM + 40.0), "middle", name);
    }

    /// One entry of the legend.
    pub(super) fn legend(&mut self, index: usize, name: &str) {
        let y = entry(index);
        self.bar(RIGHT + 14.0, 12.0, y - 9.0, y + 1.0, colour(index));
        self.text((RIGHT + 32.0, y), "start", name);
    }

    pub(super) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// Where an entry of the legend is.
fn entry(index: usize) -> f64 {
    TOP + 14.0 + index as f64 * 18.0
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
