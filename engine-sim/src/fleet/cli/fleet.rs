//! The fleet that arguments describe: workers, prefill pool, events, routers' sight of each other.

use anyhow::{Result, bail, ensure};

use super::args::{ChooseAt, FirstBy, FleetArgs, PoolArgs, RouterArgs};
use super::steps::Steps;
use crate::fleet::law::{PrefillLaw, Preset, TransferLaw};
use crate::fleet::simulate::{
    Change, Choice, DecodeOptions, FirstToken, FleetOptions, PrefillOptions, ScriptLine, Visibility,
};

/// Options without a warm-up.
pub(super) fn options(args: &FleetArgs, steps: &Steps) -> Result<FleetOptions> {
    let pool = &args.pool;
    let kv_tokens = pool.kv_tokens.or(steps.preset.as_ref().map(Preset::kv_capacity_tokens));
    Ok(FleetOptions {
        decode: DecodeOptions {
            max_batch: pool.max_batch as usize,
            kv_tokens: kv_tokens.unwrap_or(u64::MAX),
            recompute_per_token_s: pool.recompute_us / 1e6,
        },
        prefill: pool.prefill_workers.map(|workers| PrefillOptions {
            workers: workers as usize,
            law: prefill_law(pool, steps),
            max_batch_tokens: pool.prefill_batch_tokens,
        }),
        transfer: match &steps.preset {
            Some(preset) => TransferLaw {
                latency: pool.hand_off_ms / 1e3,
                ..preset.transfer(pool.network_gbps)
            },
            None => TransferLaw {
                latency: pool.hand_off_ms / 1e3,
                bytes_per_token: 0.0,
                bytes_per_second: 1.0,
            },
        },
        choice: match pool.choose {
            ChooseAt::Prefill => Choice::AfterPrefill,
            ChooseAt::Arrival => Choice::AtArrival,
        },
        first_token: match pool.first_token {
            FirstBy::Decode => FirstToken::Decode,
            FirstBy::Prefill => FirstToken::Prefill,
        },
        visibility: visibility(&args.router),
        load_s: pool.load_seconds,
        script: script(&pool.fault, args.workers)?,
        attempts: pool.attempts,
        ..FleetOptions::plain(args.workers as usize)
    })
}

fn prefill_law(pool: &PoolArgs, steps: &Steps) -> PrefillLaw {
    match &steps.preset {
        Some(preset) => preset.prefill(),
        None => PrefillLaw {
            fixed: pool.prefill_base_ms / 1e3,
            per_token: pool.prefill_per_token_us / 1e6,
            per_token_squared: 0.0,
            weights: 0.0,
        },
    }
}

fn visibility(router: &RouterArgs) -> Visibility {
    if let Some(interval_s) = router.reports_every {
        return Visibility::Reports {
            interval_s,
            delay_s: router.report_delay,
            max_age_s: router.report_max_age,
        };
    }
    router
        .exchange_every
        .map_or(Visibility::OwnOnly, |interval_s| Visibility::Exchange {
            interval_s,
            delay_s: router.exchange_delay,
        })
}

/// Events by time. Fails on a worker that cannot be there then.
fn script(faults: &[ScriptLine], workers: u32) -> Result<Vec<ScriptLine>> {
    let mut script = faults.to_vec();
    script.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    // Workers are numbered in the order they are started; scaling starts at most as many as it asks for.
    let mut numbered = workers;
    for line in &script {
        match line.change {
            Change::Start(count) | Change::Scale(count) => numbered = numbered.saturating_add(count),
            Change::Lose(worker) | Change::Drain(worker) if worker >= numbered => bail!(
                "--fault at {} s: there is no worker {worker} then, they are numbered 0 to {}",
                line.at_s,
                numbered - 1
            ),
            Change::Lose(_) | Change::Drain(_) => {}
        }
    }
    ensure!(
        numbered <= 8192,
        "--fault: at most 8192 workers in all, these lines may start up to {numbered}"
    );
    Ok(script)
}
