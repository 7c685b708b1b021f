"""The route decision in numpy: as one would write the formulas down, and with as few passes and temporaries as numpy allows."""

import numpy as np

from files import load
from timing import times


def decide_as_written(counts, mask, idf, centroids, cluster, loads, tau):
    signature = counts[mask].astype(np.float32).reshape(-1) * idf
    signature = signature / max(np.linalg.norm(signature), 1e-9)
    similarity = (centroids @ signature)[cluster]
    band = np.flatnonzero(similarity >= similarity.max() - tau)
    return band[np.argmin(loads[band])]


def decide(counts, idf, centroids, cluster, loads, tau):
    signature = counts * idf
    norm = np.sqrt(signature.dot(signature))
    signature /= max(norm, np.float32(1e-9))
    similarity = (centroids @ signature)[cluster]
    band = np.flatnonzero(similarity >= similarity.max() - tau)
    return band[loads[band].argmin()]


def route(counts, idf, centroids, cluster, loads, tau, layers, timed, calls):
    counts, idf, centroids = load(counts), load(idf), load(centroids)
    cluster, loads, tau = load(cluster), load(loads), np.float32(tau)
    mask, requests = np.arange(layers), len(counts)

    # f32 as the other side computes: u32 times f32 would become f64.
    def tight(call):
        row = counts[call % requests].astype(np.float32)
        return decide(row, idf, centroids, cluster, loads[call % requests], tau)

    def written(call):
        matrix = counts[call % requests].reshape(layers, -1)
        return decide_as_written(matrix, mask, idf, centroids, cluster, loads[call % requests], tau)

    chosen = [int(tight(call)) for call in range(requests)]
    return {"seconds": times(lambda call: tight(call % timed), calls), "written": times(lambda call: written(call % timed), calls), "chosen": chosen}
