"""Times of repeated calls."""

import time


def times(work, calls):
    """Seconds of each call of work(0), work(1), ... by itself."""
    seconds = []
    for call in range(calls):
        start = time.perf_counter()
        work(call)
        seconds.append(time.perf_counter() - start)
    return seconds
