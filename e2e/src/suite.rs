//! The cluster, the images, and the operator installed with Helm.

use std::{collections::BTreeMap, env, path::PathBuf, process::Stdio};

use anyhow::{Context, Result, ensure};
use kube::Client;
use tokio::{process::Command, sync::OnceCell};

use crate::prompts::repository;

/// Namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "coterie-system";
/// Name of the Helm release and of the operator's Deployment.
pub const RELEASE: &str = "coterie";

/// Everything that tests share.
#[derive(Clone)]
pub struct Suite {
    /// Image of each binary, by its name (`operator`, `router`, `calibrator`, `engine-sim`).
    pub images: BTreeMap<String, String>,
}

static INSTALLED: OnceCell<()> = OnceCell::const_new();

impl Suite {
    /// Reads the images and installs the operator, the first time.
    ///
    /// # Errors
    /// When the suite was not started by `cargo xtask test`, or the chart does not install.
    pub async fn start() -> Result<Self> {
        let path = env::var("COTERIE_IMAGES").context("COTERIE_IMAGES is not set: run `cargo xtask test`")?;
        let images = serde_json::from_slice(&std::fs::read(&path).with_context(|| format!("read {path}"))?)
            .with_context(|| format!("{path} is not a map of image names"))?;
        coterie_service::start(
            "coterie-e2e",
            &coterie_service::ServiceArgs {
                log: "warn".into(),
                ..Default::default()
            },
        )?;
        let suite = Self { images };
        INSTALLED.get_or_try_init(|| suite.install()).await?;
        Ok(suite)
    }

    /// An image's reference.
    ///
    /// # Errors
    /// When the map has none.
    pub fn image(&self, name: &str) -> Result<&str> {
        Ok(self
            .images
            .get(name)
            .with_context(|| format!("COTERIE_IMAGES has no {name}"))?)
    }

    /// A client of the API server. Each test's runtime needs its own.
    ///
    /// # Errors
    /// When KUBECONFIG leads nowhere.
    pub async fn client(&self) -> Result<Client> {
        Client::try_default()
            .await
            .context("connect to the API server of KUBECONFIG")
    }

    /// Installs or upgrades the chart and waits for the operator.
    ///
    /// # Errors
    /// When Helm fails.
    pub async fn install(&self) -> Result<()> {
        let chart = repository().join("charts/coterie");
        let chart = chart.to_string_lossy().into_owned();
        let mut args = vec![
            "upgrade",
            "--install",
            RELEASE,
            &chart,
            "--namespace",
            OPERATOR_NAMESPACE,
        ];
        args.extend(["--create-namespace", "--wait", "--timeout", "120s"]);
        let sets: Vec<String> = [
            ("operator", "operator"),
            ("router", "router"),
            ("calibrator", "calibrator"),
        ]
        .into_iter()
        .map(|(value, image)| Ok(format!("images.{value}={}", self.image(image)?)))
        .collect::<Result<_>>()?;
        for set in &sets {
            args.extend(["--set", set]);
        }
        helm(&args).await.map(drop)
    }
}

/// Runs Helm; its output.
///
/// # Errors
/// When it fails: with its output.
pub async fn helm(args: &[&str]) -> Result<String> {
    run(&tool("helm"), args).await
}

/// Runs kubectl; its output.
///
/// # Errors
/// When it fails: with its output.
pub async fn kubectl(args: &[&str]) -> Result<String> {
    run(&tool("kubectl"), args).await
}

/// Runs `cargo xtask` with the binary that started the suite.
///
/// # Errors
/// When it fails: with its output.
pub async fn xtask(args: &[&str]) -> Result<String> {
    let binary = env::var("COTERIE_XTASK").context("COTERIE_XTASK is not set: run `cargo xtask test`")?;
    run(&PathBuf::from(binary), args).await
}

fn tool(name: &str) -> PathBuf {
    env::var_os("COTERIE_TOOLS").map_or_else(|| PathBuf::from(name), |folder| PathBuf::from(folder).join(name))
}

async fn run(program: &PathBuf, args: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(repository())
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("run {}", program.display()))?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    ensure!(
        output.status.success(),
        "{} {}: {}\n{text}",
        program.display(),
        args.join(" "),
        output.status
    );
    Ok(text)
}
