//! The process: health server, leader election, watches, the three controllers, an orderly end.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use coterie_crds::v1alpha1::MoEDeployment;
use coterie_service::{Gate, Readiness, Shutdown, health_server, metrics::Metrics};
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    runtime::{
        controller::{self, Action, Controller as KubeController},
        events::{Recorder, Reporter},
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    args::Args,
    calibration,
    context::{Context, Settings},
    drift,
    error::Error,
    fleet,
    kube_io::children::Children,
    leader::Leader,
    metrics::{Controller, ControllerLabels, ErrorLabels, OperatorMetrics},
    owner::Fleet,
    retry::Backoff,
    router_admin::RouterAdmin,
    watch::{self, Guarded, GuardedController, Owned},
};

/// A reconcile that takes longer is given up and tried again: no API call may hold a worker for ever.
const RECONCILE_LIMIT: Duration = Duration::from_secs(60);
/// Bursts of events of one object become one reconcile.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// Runs the operator until a signal ends it or the Lease is lost.
pub async fn run(args: Args) -> Result<()> {
    coterie_service::start("coterie-operator", &args.service)?;
    let shutdown = Shutdown::on_signals()?;
    let stop = shutdown.token();
    let (registry, readiness) = (Metrics::default(), Readiness::default());
    let metrics = OperatorMetrics::register(&registry);
    let reachable = readiness.gate("API server");
    let server = health_server::bind(args.service.metrics_address, registry, readiness).await?;
    let serving = tokio::spawn(server.run(stop.clone()));
    let client = Client::try_default()
        .await
        .context("find the API server: run in a pod, or set KUBECONFIG")?;
    let worked = work(&args, client, metrics, reachable, &stop).await;
    // Whatever ended the work ends the process.
    stop.cancel();
    serving.await.context("health server")??;
    worked
}

async fn work(
    args: &Args,
    client: Client,
    metrics: OperatorMetrics,
    reachable: Gate,
    stop: &CancellationToken,
) -> Result<()> {
    crds_are_installed(&client).await?;
    reachable.open();
    if !args.leader_elect {
        metrics.is_leader.set(1);
        return control(args, client, metrics, stop).await;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), &args.lease_namespace);
    let leader = Leader::new(leases, &args.lease_name, &args.identity);
    if !leader.acquire(stop).await? {
        return Ok(());
    }
    tracing::info!(identity = args.identity, "leading");
    metrics.is_leader.set(1);
    let gauge = metrics.is_leader.clone();
    let ended = CancellationToken::new();
    let worked = tokio::select! {
        worked = control(args, client, metrics, stop) => worked,
        // The Lease is held while running reconciles finish, and lost only by an error.
        lost = leader.hold(&ended) => lost,
    };
    gauge.set(0);
    if worked.is_ok() {
        leader.release().await?;
    }
    worked
}

async fn crds_are_installed(client: &Client) -> Result<()> {
    let probe: Api<MoEDeployment> = Api::default_namespaced(client.clone());
    match probe.list(&kube::api::ListParams::default().limit(1)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            anyhow::bail!(
                "the CustomResourceDefinitions of coterie.dev are not installed: `helm upgrade --install` the chart with crds.install=true"
            )
        }
        // Missing rights in one namespace say nothing about the others.
        Err(kube::Error::Api(_)) | Ok(_) => Ok(()),
        Err(error) => Err(error).context("reach the API server"),
    }
}

async fn control(args: &Args, client: Client, metrics: OperatorMetrics, stop: &CancellationToken) -> Result<()> {
    let scope = args.namespace.as_deref();
    let mut children = Children::new(fleet::MANAGER);
    let owned = Owned::watch(&mut children, &client, scope);
    let (pods, pod_changes) = watch::pods(&client, scope);
    let ctx = Arc::new(context(args, client.clone(), metrics, pods, children)?);
    let base = || {
        KubeController::new(watch::api::<Guarded>(&client, scope), watcher::Config::default())
            .with_config(
                controller::Config::default()
                    .concurrency(args.concurrency)
                    .debounce(DEBOUNCE),
            )
            .graceful_shutdown_on(stop.clone().cancelled_owned())
    };
    let fleets = base();
    let gone = forget_deleted(fleets.store(), ctx.clone());
    let fleets = owned
        .attach(fleets)
        .watches_stream(pod_changes, |pod: Pod| watch::deployment_of(&pod));
    let calibrations = watch::runs_tables_and_jobs(base(), &client, scope);
    futures::join!(
        drive(Controller::Fleet, fleets, ctx.clone(), |object, ctx| {
            fleet::controller::reconcile(object, ctx).boxed()
        }),
        drive(Controller::Calibration, calibrations, ctx.clone(), |object, ctx| {
            calibration::controller::reconcile(object, ctx).boxed()
        }),
        drive(Controller::Drift, base(), ctx.clone(), |object, ctx| {
            drift::controller::reconcile(object, ctx).boxed()
        }),
        async {
            tokio::select! {
                () = gone => {}
                () = stop.cancelled() => {}
            }
        },
    );
    Ok(())
}

fn context(
    args: &Args,
    client: Client,
    metrics: OperatorMetrics,
    pods: Store<Pod>,
    children: Children,
) -> Result<Context> {
    let reporter = Reporter {
        controller: "coterie-operator".into(),
        instance: Some(args.identity.clone()),
    };
    Ok(Context {
        recorder: Recorder::new(client.clone(), reporter),
        settings: Settings {
            router_image: args.router_image.clone(),
            calibrator_image: args.calibrator_image.clone(),
        },
        pods,
        children: Arc::new(children),
        routers: RouterAdmin::standard().context("HTTP client")?,
        metrics,
        drift: drift::memory::DriftMemory::default(),
        backoff: Backoff::default(),
        client,
    })
}

type Reconciled<'a> = futures::future::BoxFuture<'a, Result<Action, Error>>;

/// Runs one controller until it is told to stop and its running reconciles are done.
async fn drive(
    which: Controller,
    controller: GuardedController,
    ctx: Arc<Context>,
    reconcile: impl Fn(Arc<MoEDeployment>, Arc<Context>) -> Reconciled<'static> + Copy + Send + Sync + 'static,
) {
    controller
        .run(
            move |object, ctx| guarded(which, object, ctx, reconcile),
            move |object, error, ctx| failed(which, &object, error, &ctx),
            ctx.clone(),
        )
        .for_each(|result| {
            let ctx = ctx.clone();
            async move {
                match result {
                    // A run that names this object changed, and the object does not exist.
                    Err(controller::Error::ObjectNotFound(missing)) if which == Controller::Calibration => {
                        let namespace = missing.namespace.unwrap_or_default();
                        if let Err(error) = Box::pin(calibration::orphan::tell(&ctx, &namespace, &missing.name)).await {
                            tracing::warn!(
                                namespace,
                                deployment = missing.name,
                                error = error.chain(),
                                "runs of a missing MoEDeployment were not told"
                            );
                        }
                    }
                    Ok(_) | Err(controller::Error::ObjectNotFound(_) | controller::Error::ReconcilerFailed(..)) => {}
                    Err(error) => tracing::warn!(controller = ?which, %error, "watch"),
                }
            }
        })
        .await;
}

async fn guarded<F>(which: Controller, object: Arc<Guarded>, ctx: Arc<Context>, reconcile: F) -> Result<Action, Error>
where
    F: Fn(Arc<MoEDeployment>, Arc<Context>) -> Reconciled<'static>,
{
    let deployment = match &object.0 {
        Ok(deployment) => Arc::new(deployment.clone()),
        // One object that an older CRD let in must not stop the others; a change of it brings us back.
        Err(invalid) => {
            tracing::warn!(controller = ?which, name = invalid.metadata.name, namespace = invalid.metadata.namespace,
                error = invalid.error, "MoEDeployment is not understood");
            return Ok(Action::await_change());
        }
    };
    let fleet = Fleet::of(&deployment)?;
    let started = tokio::time::Instant::now();
    let result = timeout(RECONCILE_LIMIT, reconcile(deployment, ctx.clone()))
        .await
        .unwrap_or_else(|_| {
            tracing::warn!(controller = ?which, %fleet, "reconcile took too long");
            Ok(Action::requeue(Duration::from_secs(5)))
        });
    ctx.metrics
        .reconcile_seconds
        .get_or_create(&ControllerLabels { controller: which })
        .observe(started.elapsed().as_secs_f64());
    if result.is_ok() {
        ctx.backoff.clear(&(which, fleet));
    }
    result
}

fn failed(which: Controller, object: &Guarded, error: &Error, ctx: &Context) -> Action {
    let category = error.category();
    ctx.metrics
        .reconcile_errors
        .get_or_create(&ErrorLabels {
            controller: which,
            category,
        })
        .inc();
    let fleet = object.0.as_ref().ok().and_then(|d| Fleet::of(d).ok());
    let Some(fleet) = fleet else {
        return Action::await_change();
    };
    let delay = ctx.backoff.failed((which, fleet.clone()), category);
    tracing::warn!(controller = ?which, %fleet, ?category, error = error.chain(), retry_in = ?delay, "reconcile failed");
    Action::requeue(delay)
}

/// Drops what is remembered of MoEDeployments that are gone.
async fn forget_deleted(store: Store<Guarded>, ctx: Arc<Context>) {
    let mut every = tokio::time::interval(Duration::from_secs(30));
    loop {
        every.tick().await;
        for fleet in ctx.drift.known() {
            let key = ObjectRef::new(&fleet.name).within(&fleet.namespace);
            let uid = store.get(&key).and_then(|o| o.uid());
            if uid.as_deref() == Some(fleet.uid.as_str()) {
                continue;
            }
            ctx.drift.forget(&fleet);
            ctx.metrics.forget(&fleet);
            ctx.children.forget(&fleet.namespace, &fleet.name);
            for which in [Controller::Fleet, Controller::Calibration, Controller::Drift] {
                ctx.backoff.clear(&(which, fleet.clone()));
            }
        }
    }
}
