//! Lines over a numeric axis.

use super::axis::{Axis, label};
use super::canvas::{BOTTOM, Canvas, LEFT, RIGHT, TOP, colour};

/// A line chart.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Above the picture.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// Lines.
    pub series: Vec<Series>,
    /// Moments marked by vertical lines, with names.
    pub marks: Vec<(f64, String)>,
}

/// One line.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// (x, y, half-width of y's interval).
    pub points: Vec<(f64, f64, f64)>,
}

impl Lines {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let all = || self.series.iter().flat_map(|s| &s.points);
        let x = Axis::over(all().map(|p| p.0), LEFT, RIGHT);
        let y = Axis::over(all().flat_map(|p| [p.1 - p.2, p.1 + p.2]), BOTTOM, TOP);
        let mut canvas = Canvas::new(&self.title, self.series.len());
        canvas.vertical(&y, &self.y);
        canvas.horizontal_name(&self.x);
        for tick in x.ticks() {
            canvas.text((x.at(tick), BOTTOM + 18.0), "middle", &label(tick));
        }
        for (at, name) in &self.marks {
            canvas.line((x.at(*at), TOP), (x.at(*at), BOTTOM), "#999999", 1.0);
            canvas.text((x.at(*at) + 3.0, TOP + 10.0), "start", name);
        }
        for (index, series) in self.series.iter().enumerate() {
            let points: Vec<(f64, f64)> = series.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
            canvas.path(&points, colour(index));
            for (at, point) in points.iter().zip(&series.points) {
                if series.points.len() <= 30 {
                    canvas.dot(*at, colour(index));
                }
                if point.2 > 0.0 {
                    let end = |v: f64| (at.0, y.at(v));
                    canvas.line(end(point.1 - point.2), end(point.1 + point.2), colour(index), 1.0);
                }
            }
            canvas.legend(index, &series.name);
        }
        canvas.finish()
    }
}
