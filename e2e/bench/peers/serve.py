"""Answers calls from standard input, one JSON object a line: {"call": name, "arguments": {...}}. Every function times itself, without
reading files, and without a first call that warms caches up."""

import importlib
import json
import sys
import traceback

MODULES = {
    "versions": "versions",
    "route": "route",
    "choose": "choose",
    "counts": "counts",
    "assign_flow": "assignment",
    "assign_hungarian": "assignment",
    "kmeans_constrained": "clustering",
    "kmeans_plain": "clustering",
    "ridge_fit": "ridge",
    "ridge_cv": "ridge",
    "ridge_text": "ridge",
    "ridge_counts": "ridge",
}


def answer(line):
    request = json.loads(line)
    name = request["call"]
    module = importlib.import_module(MODULES[name])
    return getattr(module, name)(**request["arguments"])


def main():
    for line in sys.stdin:
        try:
            result = answer(line)
        except Exception:
            traceback.print_exc()
            result = {"error": traceback.format_exc(limit=-1)}
        print(json.dumps(result), flush=True)


main()
