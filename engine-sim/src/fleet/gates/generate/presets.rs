//! Parameters for the geometries of known models.

use coterie_locality::Geometry;
use coterie_locality::geometry::GeometryError;
use serde::{Deserialize, Serialize};

use super::Parameters;
use crate::fleet::gates::Statistics;

/// Models whose geometry there is a preset for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// 6 layers, 64 experts, top-4, fitted to the recording that comes with engine-sim.
    TinyMoe,
    /// 48 layers, 128 experts, top-8.
    Qwen3A3b,
    /// 36 layers, 128 experts, top-4.
    GptOss120b,
    /// 58 layers, 256 experts, top-8.
    DeepseekV3,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::TinyMoe, Self::Qwen3A3b, Self::GptOss120b, Self::DeepseekV3];

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::TinyMoe => "tiny-moe",
            Self::Qwen3A3b => "qwen3-a3b",
            Self::GptOss120b => "gpt-oss-120b",
            Self::DeepseekV3 => "deepseek-v3",
        }
    }

    /// The geometry.
    pub fn geometry(self) -> Result<Geometry, GeometryError> {
        let (layers, experts, top_k) = match self {
            Self::TinyMoe => (6, 64, 4),
            Self::Qwen3A3b => (48, 128, 8),
            Self::GptOss120b => (36, 128, 4),
            Self::DeepseekV3 => (58, 256, 8),
        };
        Geometry::new(layers, experts, top_k)
    }

    /// A shape by name, or `LAYERSxEXPERTSxTOPK`: the geometry, and the shape whose parameters stand in for it.
    pub fn parse(text: &str) -> Result<(Geometry, Self), String> {
        if let Some(shape) = Self::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(text)) {
            return Ok((shape.geometry().map_err(|e| e.to_string())?, shape));
        }
        let numbers: Option<Vec<usize>> = text.split('x').map(|n| n.parse().ok()).collect();
        let Some([layers, experts, top_k]) = numbers.as_deref() else {
            let names: Vec<&str> = Self::ALL.iter().map(|s| s.name()).collect();
            return Err(format!(
                "a shape is LAYERSxEXPERTSxTOPK, e.g. 48x128x8, or one of {}; got {text:?}",
                names.join(", ")
            ));
        };
        let geometry = Geometry::new(*layers, *experts, *top_k).map_err(|e| e.to_string())?;
        Ok((geometry, Self::nearest(geometry)))
    }

    /// The shape of this geometry, or the one whose parameters are taken for those that nothing is known of.
    pub fn nearest(geometry: Geometry) -> Self {
        let same = |s: &Self| s.geometry().is_ok_and(|g| g == geometry);
        Self::ALL.into_iter().find(same).unwrap_or(Self::Qwen3A3b)
    }

    /// What the parameters were fitted to, with eight domains; `None` for shapes that were not fitted to numbers set by hand.
    ///
    /// From the ELDR paper: rho 0.76, per-expert correlation in the middle of 0.70 to 0.92. Assumed, since nobody has published them: distinct
    /// experts at a batch of 16 a fifth below what even gates would give, and 18 % fewer in same-domain batches (14 to 16 % on the tiny model's
    /// recordings; published elsewhere: 15 % by text similarity, 21 % by an oracle). Requests of one domain are then more alike (overlap 0.84) than the
    /// tiny model's (0.61).
    pub fn target(self) -> Option<Statistics> {
        if self != Self::Qwen3A3b {
            return None;
        }
        let geometry = self.geometry().ok()?;
        let (experts, top_k) = (geometry.experts as f64, geometry.top_k as f64);
        let even = experts * (1.0 - (1.0 - top_k / experts).powi(16));
        Some(Statistics {
            expert_correlation: Some(0.85),
            rho: Some(0.76),
            distinct: [(16, 0.8 * even)].into(),
            domain_saving: Some(0.18),
            ..Statistics::default()
        })
    }
}

/// Parameters of a shape: fitted to the recording for the tiny model, to [`Shape::target`] for Qwen3. The others take Qwen3's, not fitted: nothing is
/// published to fit them to.
pub fn preset(shape: Shape) -> Parameters {
    let [base, domain, request, phase, own, persistence] = match shape {
        Shape::TinyMoe => [0.404, 0.903, 0.766, 0.101, 0.354, 0.147],
        Shape::Qwen3A3b | Shape::GptOss120b | Shape::DeepseekV3 => [0.862, 1.234, 0.288, 0.554, 0.495, 0.199],
    };
    Parameters {
        base,
        domain,
        request,
        phase,
        own,
        persistence,
        follow: 0.75,
    }
}
