//! Leader election by a Lease: several operators may run, one works. A Lease is advisory, so all writes are harmless when done twice.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a holder that stopped renewing is believed.
const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed, and tried for.
const RENEW: Duration = Duration::from_secs(4);
/// When a holder that cannot renew gives up: before others take over.
const GIVE_UP: Duration = Duration::from_secs(11);

/// A Lease to hold.
#[derive(Clone, Debug)]
pub struct Leader {
    api: Api<Lease>,
    name: String,
    identity: String,
}

/// The last state of another holder's Lease, timed by our own clock: clocks of two machines are never compared.
struct Other {
    holder: String,
    version: Option<String>,
    since: Instant,
}

impl Leader {
    /// A Lease by name; `identity` is the pod's name.
    pub fn new(api: Api<Lease>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            api,
            name: name.into(),
            identity: identity.into(),
        }
    }

    /// Waits until the Lease is ours. Returns false when `stop` came first.
    pub async fn acquire(&self, stop: &CancellationToken) -> Result<bool> {
        let mut other: Option<Other> = None;
        loop {
            match self.try_acquire(&mut other).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, lease = self.name, "lease not read or written"),
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(false),
                () = sleep(RENEW) => {}
            }
        }
    }

    async fn try_acquire(&self, other: &mut Option<Other>) -> kube::Result<bool> {
        let Some(mut lease) = self.api.get_opt(&self.name).await? else {
            let lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    ..ObjectMeta::default()
                },
                spec: Some(self.claim(None)),
            };
            return won(self.api.create(&PostParams::default(), &lease).await);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().unwrap_or_default();
        if !holder.is_empty() && holder != self.identity {
            let version = lease.metadata.resource_version.clone();
            let unchanged = other.as_ref().filter(|o| o.version == version);
            let patience = spec
                .lease_duration_seconds
                .map_or(DURATION, |s| Duration::from_secs(s.max(1).unsigned_abs().into()));
            match unchanged {
                Some(seen) if seen.since.elapsed() > patience => {
                    tracing::info!(holder, "holder stopped renewing: taking over");
                }
                Some(_) => return Ok(false),
                None => {
                    if other.as_ref().is_none_or(|o| o.holder != holder) {
                        tracing::info!(holder, "standing by");
                    }
                    *other = Some(Other {
                        holder,
                        version,
                        since: Instant::now(),
                    });
                    return Ok(false);
                }
            }
        }
        lease.metadata.managed_fields = None;
        lease.spec = Some(self.claim(Some(&spec)));
        // The resourceVersion in the object makes one of two claimants lose.
        won(self.api.replace(&self.name, &PostParams::default(), &lease).await)
    }

    fn claim(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let ours = before.is_some_and(|b| b.holder_identity.as_deref() == Some(self.identity.as_str()));
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: before
                .filter(|_| ours)
                .and_then(|b| b.acquire_time.clone())
                .or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(before.map_or(0, |b| b.lease_transitions.unwrap_or(0) + i32::from(!ours))),
            ..LeaseSpec::default()
        }
    }

    /// Renews until `stop`. An error means that the Lease is lost: the process must end, because another one may work now.
    pub async fn hold(&self, stop: &CancellationToken) -> Result<()> {
        let mut renewed = Instant::now();
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = sleep(RENEW) => {}
            }
            match timeout(RENEW, self.renew()).await {
                Ok(Ok(())) => renewed = Instant::now(),
                Ok(Err(Lost::Taken(holder))) => bail!("{holder} took the lease {}", self.name),
                Ok(Err(Lost::Api(error))) => tracing::warn!(%error, "lease not renewed"),
                Err(_) => tracing::warn!("lease not renewed in time"),
            }
            if renewed.elapsed() > GIVE_UP {
                bail!("lease {} could not be renewed for {} s", self.name, GIVE_UP.as_secs());
            }
        }
    }

    async fn renew(&self) -> Result<(), Lost> {
        let mut lease = self.api.get(&self.name).await?;
        let spec = lease.spec.clone().unwrap_or_default();
        if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
            return Err(Lost::Taken(spec.holder_identity.unwrap_or_else(|| "nobody".into())));
        }
        lease.metadata.managed_fields = None;
        lease.spec = Some(self.claim(Some(&spec)));
        self.api.replace(&self.name, &PostParams::default(), &lease).await?;
        Ok(())
    }

    /// Gives the Lease up, so that another one need not wait.
    pub async fn release(&self) -> Result<()> {
        let mut lease = self.api.get(&self.name).await.context("read lease")?;
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(self.identity.as_str()) {
            return Ok(());
        }
        spec.holder_identity = None;
        lease.metadata.managed_fields = None;
        self.api
            .replace(&self.name, &PostParams::default(), &lease)
            .await
            .context("release lease")?;
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("taken by {0}")]
    Taken(String),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

fn won(result: kube::Result<Lease>) -> kube::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}
