//! Samples from the routers' reservoirs.

use std::{
    io::Cursor,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use coterie_crds::admin::SAMPLES_PATH;
use coterie_locality::{Fingerprint, Sample, sample::SampleReader};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::error::Error;

/// Largest reservoir that is taken from one router.
const MAX_RESERVOIR_BYTES: usize = 1 << 30;

/// The routers' admin ports.
#[derive(Clone, Debug)]
pub struct Routers {
    /// `host:port`; every address of the name is asked.
    pub admin: String,
    /// File with the bearer key.
    pub token_file: PathBuf,
}

impl Routers {
    /// Samples taken at or after `since_ms` (Unix time), of the given model and with prefill counts: at most `limit`, drawn with `seed`.
    ///
    /// # Errors
    /// When no router answers, or the key is refused.
    pub async fn collect(
        &self,
        fingerprint: &Fingerprint,
        since_ms: u64,
        limit: usize,
        seed: u64,
    ) -> Result<Vec<Sample>, Error> {
        let token = read_token(&self.token_file)?;
        let mut addresses: Vec<SocketAddr> = tokio::net::lookup_host(&self.admin)
            .await
            .map_err(|error| Error::infrastructure("NoRouters", format!("resolve {}: {error}", self.admin)))?
            .collect();
        addresses.sort_unstable();
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(120))
            .build()
            .map_err(|error| Error::infrastructure("NoClient", error.to_string()))?;
        let mut samples = Vec::new();
        let mut answered = 0_usize;
        for address in addresses {
            match reservoir(&client, address, &token, since_ms, limit).await {
                Ok(mut some) => {
                    answered += 1;
                    tracing::info!(router = %address, samples = some.len(), "reservoir read");
                    samples.append(&mut some);
                }
                Err(error @ Error::Input { .. }) => return Err(error),
                Err(error) => tracing::warn!(router = %address, %error, "router passed over"),
            }
        }
        if answered == 0 {
            let message = format!("no router answered on {}: are the router pods ready?", self.admin);
            return Err(Error::infrastructure("NoRouters", message));
        }
        samples.retain(|sample| sample.prefill_counts.is_some() && sample.fingerprint.matches(fingerprint));
        if samples.len() > limit {
            samples.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
            samples.truncate(limit);
        }
        Ok(samples)
    }
}

async fn reservoir(
    client: &reqwest::Client,
    router: SocketAddr,
    token: &str,
    since_ms: u64,
    limit: usize,
) -> Result<Vec<Sample>, Error> {
    let failed = |error: reqwest::Error| Error::infrastructure("RouterFailed", error.to_string());
    let url = format!("http://{router}{SAMPLES_PATH}?since={since_ms}&limit={limit}");
    let mut response = client.get(url).bearer_auth(token).send().await.map_err(failed)?;
    match response.status().as_u16() {
        200 => {}
        401 | 403 => {
            return Err(Error::input(
                "KeyRefused",
                format!("router {router} refused the admin key"),
            ));
        }
        status => {
            return Err(Error::infrastructure(
                "RouterFailed",
                format!("router {router} answered {status}"),
            ));
        }
    }
    let mut container = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if container.len() + chunk.len() > MAX_RESERVOIR_BYTES {
            return Err(Error::infrastructure(
                "RouterFailed",
                format!("router {router} sent more than 1 GiB"),
            ));
        }
        container.extend_from_slice(&chunk);
    }
    let unreadable = |error: coterie_locality::sample::SampleError| {
        Error::infrastructure("RouterFailed", format!("samples of router {router}: {error}"))
    };
    SampleReader::new(Cursor::new(container))
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)
}

fn read_token(path: &Path) -> Result<String, Error> {
    let token = std::fs::read_to_string(path)
        .map_err(|error| Error::infrastructure("NoKey", format!("read {}: {error}", path.display())))?;
    Ok(token.trim().to_owned())
}
