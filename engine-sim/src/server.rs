//! A worker as a whole: listeners, loading, engine, drain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::Rng;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::{Assets, Clock, Engine, EngineHandle, EngineOptions};
use crate::fleet::gates::generate::Generator;
use crate::http::{App, AppSettings, Ready, router};
use crate::kv::{serve_side_channel, without_delay};
use crate::model::Model;
use crate::recording::{Recording, RecordingIndex, Script, Synthetic};
use crate::settings::Settings;
use crate::tokenizer::TextCodec;

const MAX_BODY: usize = 32 << 20;
/// A drained worker ends after it has been without requests for so long: routers need a moment to notice that it leaves.
const QUIET: Duration = Duration::from_secs(1);
/// A drained prefill worker waits so long for decode workers that have not pulled yet.
const PINNED: Duration = Duration::from_secs(10);
/// Time for a stopped worker's last answers to reach their clients.
const FAREWELL: Duration = Duration::from_secs(1);

/// A worker that listens; it answers once it is loaded.
pub struct Server {
    app: Arc<App>,
    address: SocketAddr,
    engine: Engine,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<std::io::Result<()>>>,
    shutdown_timeout: Option<Duration>,
}

impl Server {
    /// Listens, loads, and returns when requests are answered. `/health` answers 503 in between.
    pub async fn start(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        let (host, port) = &settings.listen;
        let listener = TcpListener::bind((host.as_str(), *port))
            .await
            .with_context(|| format!("cannot listen on {host}:{port}: choose another --host or --port"))?;
        let address = listener.local_addr()?;
        let config = model_config(&settings).await?;
        let max_model_len = settings.max_model_len.map_or(config.max_position_embeddings, |n| {
            n.min(config.max_position_embeddings)
        });
        let app = App::new(AppSettings {
            model_names: settings.model_names.clone(),
            model_root: settings.model.display().to_string(),
            max_model_len,
            max_body: MAX_BODY,
            reject_on_drain: settings.reject_on_drain,
            time_scale: settings.step_law.time_scale,
        });
        let stop = CancellationToken::new();
        let (routes, stopped) = (router(Arc::clone(&app)), stop.clone());
        let mut tasks = vec![tokio::spawn(async move {
            axum::serve(without_delay(listener), routes)
                .with_graceful_shutdown(stopped.cancelled_owned())
                .await
        })];
        tokio::time::sleep(settings.load_time).await;
        let (assets, chat) = load_assets(&settings).await?;
        let side_listener = side_channel(&settings).await?;
        let side = side_listener.as_ref().map(|(_, host, port)| (host.clone(), *port));
        let engine = Engine::start(assets.clone(), engine_options(&settings, side), clock)?;
        if let Some((listener, host, port)) = side_listener {
            tracing::info!(%host, port, "KV side channel is open");
            tasks.push(tokio::spawn(serve_side_channel(
                listener,
                engine.handle(),
                stop.clone().cancelled_owned(),
            )));
        }
        app.set_ready(Ready {
            assets,
            engine: engine.handle(),
            chat,
        });
        tracing::info!(%address, model = settings.model_names[0], "ready");
        Ok(Self {
            app,
            address,
            engine,
            stop,
            tasks,
            shutdown_timeout: settings.shutdown_timeout,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The engine.
    pub fn engine(&self) -> EngineHandle {
        self.engine.handle()
    }

    /// Lets running requests finish, within the shutdown time-out, then stops.
    pub async fn drain(self) -> Result<()> {
        self.app.drain().begin();
        let limit = self.shutdown_timeout.unwrap_or(Duration::MAX);
        if tokio::time::timeout(limit, self.idle()).await.is_err() {
            tracing::warn!("the shutdown time-out is over: requests that still run are aborted");
        }
        self.stop().await
    }

    /// Stops at once: sequences that still run are aborted, and their clients told.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        let engine = self.engine;
        tokio::task::spawn_blocking(move || engine.stop())
            .await
            .context("the engine did not stop")?;
        let mut in_flight = self.app.drain().in_flight();
        let _ = tokio::time::timeout(FAREWELL, in_flight.wait_for(|n| *n == 0)).await;
        for mut task in self.tasks {
            if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
                task.abort();
            }
        }
        tracing::info!("stopped");
        Ok(())
    }

    /// Returns when there has been nothing in flight for a while, and no KV waits for its decode worker (or has waited long enough).
    async fn idle(&self) {
        let mut in_flight = self.app.drain().in_flight();
        let mut quiet_for = Duration::ZERO;
        while quiet_for < PINNED {
            if in_flight.wait_for(|n| *n == 0).await.is_err() {
                return;
            }
            if tokio::time::timeout(QUIET, in_flight.wait_for(|n| *n > 0))
                .await
                .is_ok()
            {
                quiet_for = Duration::ZERO;
                continue;
            }
            quiet_for += QUIET;
            if self.engine.handle().snapshot().await.is_none_or(|s| s.hand_offs == 0) {
                return;
            }
        }
    }
}

async fn model_config(settings: &Settings) -> Result<crate::model::ModelConfig> {
    let path = settings.model.join("config.json");
    let text = tokio::fs::read_to_string(&path).await.with_context(|| {
        format!(
            "cannot read {}: MODEL must be a folder with config.json, model.safetensors, tokenizer.json",
            path.display()
        )
    })?;
    Ok(crate::model::ModelConfig::parse(&text)?)
}

async fn load_assets(settings: &Settings) -> Result<(Assets, bool)> {
    let (folder, recording) = (settings.model.clone(), settings.recording.clone());
    let synthetic = settings.synthetic.clone();
    let load = move || -> Result<(Assets, bool)> {
        let model = Model::load(&folder)?;
        let codec = TextCodec::load(&folder)?;
        let codec = Arc::new(codec);
        if let Some(synthetic) = synthetic {
            let generator = Generator::new(synthetic.geometry, synthetic.parameters, synthetic.seed);
            let made_up =
                Synthetic::new(generator, synthetic.domains, Arc::clone(&codec)).map_err(anyhow::Error::msg)?;
            tracing::info!(geometry = %synthetic.geometry, domains = synthetic.domains, "gates are generated");
            let script = Some(Script::Synthetic(Arc::new(made_up)));
            let model = Arc::new(model);
            return Ok((Assets { model, codec, script }, chat_is_plain(&folder)));
        }
        let recording = recording.map(|path| -> Result<_> {
            let recording = Recording::load(&path)?;
            let c = model.config();
            let ours = (c.num_hidden_layers, c.num_experts, c.num_experts_per_tok);
            let theirs = (recording.layers, recording.experts, recording.top_k);
            anyhow::ensure!(
                ours == theirs,
                "recording {}: layers, experts, top-k are {theirs:?}, the model's {ours:?}",
                path.display()
            );
            tracing::info!(requests = recording.len(), path = %path.display(), "recording is loaded");
            Ok(Script::Recorded(Arc::new(RecordingIndex::new(recording, &codec))))
        });
        let chat = chat_is_plain(&folder);
        Ok((
            Assets {
                model: Arc::new(model),
                codec,
                script: recording.transpose()?,
            },
            chat,
        ))
    };
    tokio::task::spawn_blocking(load)
        .await
        .context("loading the model failed")?
}

/// The one chat template that is supported: every message's content and a line break.
fn chat_is_plain(folder: &std::path::Path) -> bool {
    std::fs::read_to_string(folder.join("chat_template.jinja"))
        .is_ok_and(|t| t.trim() == "{% for m in messages %}{{ m['content'] }}\n{% endfor %}")
}

fn engine_options(settings: &Settings, side_channel: Option<(String, u16)>) -> EngineOptions {
    EngineOptions {
        engine_id: uuid(),
        capture: settings.capture,
        max_num_seqs: settings.max_num_seqs,
        max_num_batched_tokens: settings.max_num_batched_tokens,
        kv_blocks: settings.kv_blocks,
        block_size: settings.block_size,
        lease: settings.lease,
        pull_timeout: settings.pull_timeout,
        side_channel,
        step_law: settings.step_law,
        prefill_law: settings.prefill_law,
    }
}

async fn side_channel(settings: &Settings) -> Result<Option<(TcpListener, String, u16)>> {
    let Some((host, port)) = &settings.side_channel else {
        return Ok(None);
    };
    let listener = TcpListener::bind((settings.listen.0.as_str(), *port))
        .await
        .with_context(|| {
            format!("cannot open the KV side channel on port {port}: set VLLM_NIXL_SIDE_CHANNEL_PORT to a free one")
        })?;
    let port = listener.local_addr()?.port();
    let host = host
        .clone()
        .or_else(|| std::env::var("POD_IP").ok().filter(|ip| !ip.is_empty()));
    Ok(Some((listener, host.unwrap_or_else(own_address), port)))
}

/// The address that this machine uses towards others. Nothing is sent: connecting a datagram socket only chooses a route.
fn own_address() -> String {
    let route = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        socket.connect("192.0.2.1:9")?;
        socket.local_addr()
    };
    route().map_or_else(|_| "127.0.0.1".to_owned(), |a| a.ip().to_string())
}

fn uuid() -> String {
    let n: u128 = rand::thread_rng().r#gen();
    let n = (n & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{n:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
