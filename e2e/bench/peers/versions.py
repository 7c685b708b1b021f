import importlib.metadata
import platform

import numpy  # noqa: F401  its library must be loaded to be seen
import threadpoolctl


def versions():
    packages = ["numpy", "scipy", "scikit-learn", "k-means-constrained", "ortools"]
    blas = [
        f"{pool['internal_api']} {pool['version']} kernel {pool.get('architecture', '?')}"
        for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return {
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "numpyBlas": blas,
    }
