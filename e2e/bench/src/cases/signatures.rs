//! Signatures of synthetic traffic, made as the fit makes them.

use coterie_locality::{
    Geometry, Transform,
    transform::{TransformKind, fit_idf},
};

use crate::synthetic::{Request, Traffic};

/// Unit signatures [N, D] of `number` requests, all layers kept.
pub(super) fn unit_signatures(geometry: Geometry, number: usize, seed: u64) -> anyhow::Result<(Vec<f32>, usize)> {
    let traffic = Traffic::new(geometry, seed);
    let requests = traffic.requests(0, number)?;
    let transform = idf_transform(&geometry, &requests)?;
    let dim = transform.dim();
    let mut rows = vec![0.0; number * dim];
    for (request, row) in requests.iter().zip(rows.chunks_exact_mut(dim)) {
        transform.signature(&request.prefill, row)?;
    }
    Ok((rows, dim))
}

fn idf_transform(geometry: &Geometry, requests: &[Request]) -> anyhow::Result<Transform> {
    let idf = fit_idf(geometry, requests.iter().map(|r| &r.prefill)).unwrap_or_default();
    let layers = (0..geometry.layers as u16).collect();
    Ok(Transform::new(TransformKind::CountIdf, geometry, layers, idf)?)
}
