//! How long a decode step takes: by hand, or a model's on a GPU; with expert-parallel ranks.

use anyhow::{Context, Result, ensure};

use super::args::{LawArgs, PlacementKind};
use crate::fleet::gates::Recording;
use crate::fleet::law::{DecodeLaw, Parallelism, Preset};
use crate::fleet::placement::{Copies, Learned, Placement, StepCost};

/// Law and ranks.
pub(super) struct Steps {
    pub(super) law: DecodeLaw,
    pub(super) preset: Option<Preset>,
    pub(super) ranks: Option<StepCost>,
}

impl Steps {
    /// `calibrating` teaches placements; `batch` is a worker's usual load.
    pub(super) fn new(args: &LawArgs, calibrating: &Recording, batch: f64) -> Result<Self> {
        let preset = preset(args, calibrating)?;
        let law = preset.as_ref().map_or_else(
            || {
                DecodeLaw::linear(
                    args.step_base_ms / 1e3,
                    args.step_per_expert_ms / 1e3,
                    args.step_per_request_ms / 1e3,
                )
            },
            Preset::decode,
        );
        ensure!(
            preset.is_some() || args.step_base_ms + args.step_per_expert_ms + args.step_per_request_ms > 0.0,
            "--step-*: a decode step must take some time"
        );
        Ok(Self {
            law,
            ranks: ranks(args, calibrating, batch)?,
            preset,
        })
    }
}

fn preset(args: &LawArgs, gates: &Recording) -> Result<Option<Preset>> {
    let (Some(model), Some(gpu)) = (&args.model, &args.gpu) else {
        return Ok(None);
    };
    let preset = match args.gpus {
        _ if args.ranks > 1 => Preset::new(model, gpu, args.ranks, Parallelism::Expert)?,
        Some(gpus) => Preset::new(model, gpu, gpus, Parallelism::Tensor)?,
        None => Preset::smallest(model, gpu, Parallelism::Tensor)?,
    };
    let (theirs, ours) = (preset.geometry()?, gates.geometry);
    ensure!(
        theirs == ours,
        "--model {}: it has {theirs}, the gates have {ours}: use gates of its shape (coterie-sim generate, or --gates generate:{}x{}x{}), or set a law by --step-*",
        preset.model().name,
        theirs.layers,
        theirs.experts,
        theirs.top_k
    );
    Ok(Some(preset))
}

fn ranks(args: &LawArgs, calibrating: &Recording, batch: f64) -> Result<Option<StepCost>> {
    let ranks = args.ranks as usize;
    if let Some(path) = &args.placement_file {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        // Rows of dense layers come first; how many follows from the file's length.
        let placement = Placement::from_json_of_model(&bytes, calibrating.geometry, ranks)
            .with_context(|| path.display().to_string())?;
        return Ok(Some(StepCost::new(&placement, Copies::One)));
    }
    if ranks == 1 {
        return Ok(None);
    }
    let learned = match args.placement {
        PlacementKind::Linear => Learned::Linear,
        PlacementKind::Eplb => Learned::Tokens,
        PlacementKind::Metro => Learned::Activations { batch },
    };
    let redundant = match (args.placement, args.redundant) {
        (PlacementKind::Linear, None | Some(0)) => 0,
        (PlacementKind::Linear, Some(_)) => anyhow::bail!("--redundant: linear placements have no copies"),
        (_, given) => given.map_or(ranks, |n| n as usize),
    };
    Ok(Some(learned.step_cost(calibrating, ranks, redundant)?))
}
