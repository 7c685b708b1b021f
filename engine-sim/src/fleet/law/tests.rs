use super::{DecodeLaw, Figures, Parallelism, PrefillLaw, Preset, PresetError, StepWork};

const MODELS: [&str; 4] = ["Qwen3-30B-A3B", "Qwen3-235B-A22B", "GPT-OSS-120B", "DeepSeek-V3"];
const GPUS: [&str; 3] = ["MI300X", "MI325X", "MI355X"];

fn near(value: f64, expected: f64, relative: f64) -> bool {
    (value - expected).abs() <= expected.abs() * relative
}

#[test]
fn parameters_add_up_to_the_published_totals() {
    for model in Figures::built_in().unwrap().models {
        let (total, active) = (model.total_parameters() / 1e9, model.active_parameters() / 1e9);
        assert!(near(total, model.published_total_b, 0.02), "{}: {total}", model.name);
        assert!(near(active, model.published_active_b, 0.02), "{}: {active}", model.name);
        assert!(model.source.contains("model card"));
    }
}

#[test]
fn sizes_of_experts_and_kv_follow() {
    let figures = Figures::built_in().unwrap();
    let mib = |i: usize| {
        let m = &figures.models[i];
        m.expert_parameters() * m.expert_bits / 8.0 / f64::from(1 << 20)
    };
    assert!(near(mib(0), 9.0, 1e-9) && near(mib(1), 36.0, 1e-9) && near(mib(3), 42.0, 1e-9));
    assert!(near(mib(2), 12.6, 2e-3));
    // 2 x 4 heads x 128 x 2 bytes x 48 layers; 576 x 2 bytes x 61 layers.
    assert!(near(figures.models[0].kv_bytes_per_token(), 98304.0, 1e-9));
    assert!(near(figures.models[3].kv_bytes_per_token(), 70272.0, 1e-9));
    assert!(near(figures.models[2].kv_read_share(1024.0), 0.5625, 1e-9));
}

#[test]
fn every_model_has_a_preset_on_every_gpu_and_too_few_gpus_are_refused() {
    for model in MODELS {
        for gpu in GPUS {
            for parallelism in [Parallelism::Tensor, Parallelism::Expert] {
                let preset = Preset::smallest(model, gpu, parallelism).unwrap();
                assert!(preset.kv_capacity_tokens() > 50_000, "{model} {gpu} {}", preset.gpus());
                preset.geometry().unwrap();
                let work = StepWork {
                    experts: 100.0,
                    batch: 8.0,
                    kv_tokens: 8000.0,
                };
                let step = preset.decode().seconds(&work);
                assert!((1e-3..0.1).contains(&step), "{model} {gpu}: {step}");
            }
        }
    }
    let error = Preset::new("deepseek-v3", "mi300x", 1, Parallelism::Tensor).unwrap_err();
    assert!(matches!(error, PresetError::Memory { .. }) && error.to_string().contains("use more GPUs"));
    let error = Preset::new("Qwen3-31B", "MI300X", 1, Parallelism::Tensor).unwrap_err();
    assert!(error.to_string().contains("Qwen3-30B-A3B, "), "{error}");
}

/// Batches from ELDR's round-robin rows by Little's law (rate x 512 tokens x TPOT / 16 workers); distinct experts of each layer as uneven gates
/// give them. The factors were chosen for this, so it guards them, and proves nothing about other models.
#[test]
fn presets_lie_near_what_eldr_measured_on_mi300x() {
    let tpot_ms = |model, batch: f64, share: f64| {
        let preset = Preset::new(model, "MI300X", 1, Parallelism::Tensor).unwrap();
        let cells = preset.geometry().unwrap().cells() as f64;
        let work = StepWork {
            experts: cells * share,
            batch,
            kv_tokens: batch * 500.0,
        };
        preset.decode().seconds(&work) * 1e3
    };
    assert!(near(tpot_ms("Qwen3-30B-A3B", 9.8, 0.40), 15.25, 0.1));
    assert!(near(tpot_ms("Qwen3-30B-A3B", 51.0, 0.83), 26.8, 0.1));
    assert!(near(tpot_ms("GPT-OSS-120B", 15.4, 0.33), 24.1, 0.1));
    assert!(near(tpot_ms("GPT-OSS-120B", 172.0, 0.90), 53.9, 0.1));
}

#[test]
fn laws_are_the_stated_sums() {
    let work = StepWork {
        experts: 100.0,
        batch: 10.0,
        kv_tokens: 5000.0,
    };
    assert!(near(DecodeLaw::plain().seconds(&work), 0.0125, 1e-12));
    assert_eq!(DecodeLaw::plain().seconds(&StepWork::default()), 0.0);
    assert!(near(PrefillLaw::plain().seconds(1000.0, 0.0), 0.024, 1e-12));
    let preset = Preset::new("Qwen3-30B-A3B", "MI300X", 1, Parallelism::Expert).unwrap();
    assert_eq!(preset.decode().exchange.per_request, 0.0);
    let prefill = preset.prefill();
    assert!(prefill.seconds(1000.0, 3000.0) > prefill.seconds(1000.0, 0.0));
    assert!(
        near(prefill.seconds(1.0, 0.0), prefill.seconds(2.0, 0.0), 1e-3),
        "short prompts wait for weights"
    );
    // 1000 tokens of 96 KiB over 50 GB/s.
    assert!(near(
        preset.transfer(400.0).seconds(1000.0),
        1e-3 + 98_304_000.0 / 5e10,
        1e-9
    ));
}

#[test]
fn a_layer_of_more_ranks_reads_less_and_exchanges() {
    let decode = |gpus| {
        Preset::new("DeepSeek-V3", "MI300X", gpus, Parallelism::Expert)
            .unwrap()
            .decode()
    };
    let (eight, sixteen) = (decode(8), decode(16));
    assert_eq!(
        eight.per_expert, sixteen.per_expert,
        "the caller counts the slowest rank's experts"
    );
    assert!(eight.exchange.fixed > 0.0 && eight.exchange.per_request > 0.0);
    assert!(sixteen.per_kv_token < eight.per_kv_token);
}
