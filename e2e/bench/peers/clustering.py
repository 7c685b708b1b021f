"""Whole K-means."""

import time

from files import load


def timed(model, rows):
    start = time.perf_counter()
    model.fit(rows)
    return {"seconds": [time.perf_counter() - start], "labels": model.labels_.tolist()}


def kmeans_constrained(rows, clusters, most, starts, seed, iterations):
    from k_means_constrained import KMeansConstrained

    model = KMeansConstrained(
        n_clusters=clusters, size_max=most, n_init=starts, max_iter=iterations, random_state=seed, n_jobs=1
    )
    return timed(model, load(rows))


def kmeans_plain(rows, clusters, most, starts, seed, iterations):
    from sklearn.cluster import KMeans

    del most
    model = KMeans(n_clusters=clusters, n_init=starts, max_iter=iterations, random_state=seed)
    return timed(model, load(rows))
