//! Groups of bars.

use super::axis::Axis;
use super::canvas::{BOTTOM, Canvas, LEFT, RIGHT, TOP, colour};

/// A bar chart.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// Above the picture.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis.
    pub y: String,
    /// Names of the bars in every group.
    pub names: Vec<String>,
    /// Groups.
    pub groups: Vec<Group>,
}

/// One group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Below it.
    pub name: String,
    /// (value, half-width of its interval) of each bar, in the order of the names.
    pub bars: Vec<(f64, f64)>,
}

impl Bars {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let ends = self
            .groups
            .iter()
            .flat_map(|g| &g.bars)
            .flat_map(|b| [b.0 - b.1, b.0 + b.1]);
        let y = Axis::over(ends.chain([0.0]), BOTTOM, TOP);
        let mut canvas = Canvas::new(&self.title, self.names.len());
        canvas.vertical(&y, &self.y);
        canvas.horizontal_name(&self.x);
        let room = (RIGHT - LEFT) / self.groups.len().max(1) as f64;
        let width = room * 0.85 / self.names.len().max(1) as f64;
        for (index, group) in self.groups.iter().enumerate() {
            let left = LEFT + room * (index as f64 + 0.075);
            for (bar, (value, half)) in group.bars.iter().enumerate() {
                let x = left + bar as f64 * width;
                canvas.bar(x, width * 0.9, y.at(0.0), y.at(*value), colour(bar));
                if *half > 0.0 {
                    let middle = x + width * 0.45;
                    canvas.line(
                        (middle, y.at(value - half)),
                        (middle, y.at(value + half)),
                        "#333333",
                        1.0,
                    );
                }
            }
            canvas.text((left + room * 0.425, BOTTOM + 18.0), "middle", &group.name);
        }
        for (index, name) in self.names.iter().enumerate() {
            canvas.legend(index, name);
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lines, Series};
    use super::*;

    #[test]
    fn pictures_are_whole_and_escape_names() {
        let bars = Bars {
            title: "a < b & c".into(),
            names: vec!["one".into(), "two".into()],
            groups: vec![Group {
                name: "g".into(),
                bars: vec![(-3.0, 1.0), (2.0, 0.0)],
            }],
            ..Bars::default()
        };
        let svg = bars.svg();
        assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<rect").count(), 1 + 2 + 2);
        let lines = Lines {
            series: vec![Series {
                name: "s".into(),
                points: vec![(0.0, 1.0, 0.5), (1.0, f64::NAN, 0.0)],
            }],
            ..Lines::default()
        };
        assert!(lines.svg().contains("<polyline"));
    }
}
