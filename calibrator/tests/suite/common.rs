//! A sim engine on loopback, and recorded prompts for it.

use std::{path::Path, sync::Arc};

use clap::Parser;
use coterie_calibrator::collect::prompts::{self, Prompt};
use coterie_engine_sim::{
    Server, Settings, cli::ServeArgs, engine::SystemClock, recording::Recording, tokenizer::TextCodec,
};
use coterie_locality::{Fingerprint, Geometry};
use serde_json::json;

pub(crate) const MODEL: &str = "tiny-moe";

#[derive(Parser)]
struct Wrapper {
    #[command(flatten)]
    serve: ServeArgs,
}

fn sim(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-sim").join(name);
    path.to_string_lossy().into_owned()
}

/// An engine without pacing; with or without capture.
pub(crate) async fn engine(capture: bool) -> Server {
    let _ = coterie_service::start(
        "test",
        &coterie_service::ServiceArgs {
            log: "warn".into(),
            ..Default::default()
        },
    );
    let (model, recording) = (sim("models/tiny-moe"), sim("recordings/tiny-moe.npz"));
    let mut args = vec![
        "serve",
        &model,
        "--served-model-name",
        MODEL,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ];
    args.extend(["--sim-recording", &recording, "--sim-time-scale", "0"]);
    if capture {
        args.push("--enable-return-routed-experts");
    }
    let settings = Settings::from_args(&Wrapper::parse_from(args).serve).unwrap();
    Server::start(settings, Arc::new(SystemClock::default())).await.unwrap()
}

pub(crate) fn fingerprint() -> Fingerprint {
    Fingerprint::new(MODEL, Geometry::new(6, 64, 4).unwrap())
}

/// The first recorded prompts, as a person would give them.
pub(crate) fn recorded_prompts(count: usize) -> (String, Vec<Prompt>) {
    let recording = Recording::load(Path::new(&sim("recordings/tiny-moe.npz"))).unwrap();
    let codec = TextCodec::load(Path::new(&sim("models/tiny-moe"))).unwrap();
    let lines: Vec<String> = (0..count)
        .map(|request| {
            json!({"model": MODEL, "prompt": codec.decode(recording.prompt(request)), "max_tokens": 16}).to_string()
        })
        .collect();
    let text = lines.join("\n");
    let prompts = prompts::parse(&text, count).unwrap();
    (text, prompts)
}
