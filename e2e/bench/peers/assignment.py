"""One assignment of samples to clusters of bounded size."""

import time

import numpy as np

from files import load

# k-means-constrained rounds distances to thousandths. Its functions get thousandfold costs here, so that it sees a millionth.
SCALE = 1000.0


def assign_flow(costs, most):
    from k_means_constrained import k_means_constrained_ as kmc

    costs = load(costs)
    samples, clusters = costs.shape
    # Of these the function uses only how many there are.
    points, centers = np.empty((samples, 1)), np.empty((clusters, 1))
    start = time.perf_counter()
    graph = kmc.minimum_cost_flow_problem_graph(points, centers, costs.astype(np.float64) * SCALE, 0, most)
    labels = kmc.solve_min_cost_flow_graph(*graph)
    seconds = time.perf_counter() - start
    return {"seconds": [seconds], "solver": solver(graph), "labels": labels.tolist()}


def solver(graph):
    """The network solver alone, without building its graph and reading its answer in Python."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    edges, costs, capacities, supplies, _, _ = graph
    flow = SimpleMinCostFlow()
    flow.add_arcs_with_capacity_and_unit_cost(edges[:, 0], edges[:, 1], capacities, costs)
    flow.set_nodes_supplies(np.arange(len(supplies)), supplies)
    start = time.perf_counter()
    flow.solve()
    return time.perf_counter() - start


def assign_hungarian(costs, most):
    from scipy.optimize import linear_sum_assignment

    replicated = np.repeat(load(costs).astype(np.float64), most, axis=1)
    start = time.perf_counter()
    rows, columns = linear_sum_assignment(replicated)
    seconds = time.perf_counter() - start
    labels = np.empty(len(rows), dtype=np.int64)
    labels[rows] = columns // most
    return {"seconds": [seconds], "labels": labels.tolist()}
