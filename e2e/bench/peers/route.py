"""The route decision in numpy, with as few passes and temporaries as it allows."""

import time

import numpy as np

from files import load


def decide(counts, idf, centroids, cluster, loads, tau):
    signature = counts * idf
    norm = np.sqrt(signature.dot(signature))
    signature /= max(norm, np.float32(1e-9))
    similarity = (centroids @ signature)[cluster]
    band = np.flatnonzero(similarity >= similarity.max() - tau)
    return band[loads[band].argmin()]


def route(counts, idf, centroids, cluster, loads, tau, calls):
    counts, idf, centroids = load(counts), load(idf), load(centroids)
    cluster, loads, tau = load(cluster), load(loads), np.float32(tau)
    # f32 as the other side computes: u32 times f32 would become f64.
    rows = [row.astype(np.float32) for row in counts]
    chosen = [int(decide(row, idf, centroids, cluster, load_, tau)) for row, load_ in zip(rows, loads)]
    seconds = []
    clock = time.perf_counter
    for call in range(calls):
        row, now = counts[call % len(counts)], loads[call % len(loads)]
        start = clock()
        decide(row.astype(np.float32), idf, centroids, cluster, now, tau)
        seconds.append(clock() - start)
    return {"seconds": seconds, "chosen": chosen}
