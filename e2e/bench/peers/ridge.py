"""Ridge regression from text or prefill frequencies to decode frequencies: closed form in numpy at rank 32, and scikit-learn."""

import functools
import time

import numpy as np

from files import load

BUCKETS = 1 << 14
RANK = 32
# Text features have length 1, frequencies are far shorter: the small ones are for them.
PENALTIES = [0.0003, 0.003, 0.03, 0.1, 0.3, 1.0, 10.0]


@functools.lru_cache(maxsize=4)
def text_features(path, samples):
    """Logarithms of counts of hashed n-grams, each row of length 1."""
    rows, buckets, counts = load(path).T
    features = np.zeros((samples, BUCKETS), dtype=np.float32)
    features[rows, buckets] = np.log1p(counts.astype(np.float32))
    return features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-9)


def data(ngrams, prefill, decode, learned_from, text):
    decode = load(decode)
    features = text_features(ngrams, len(decode)) if text else load(prefill)
    return (features[:learned_from], decode[:learned_from]), (features[learned_from:], decode[learned_from:])


def reduced_rank(features, targets):
    """Input factor, output factor, both means; the penalty with the least error when each sample is left out in turn."""
    middle, mean = features.mean(axis=0), targets.mean(axis=0)
    centred, wanted = features - middle, targets - mean
    values, vectors = np.linalg.eigh(centred @ centred.T)
    values = np.maximum(values, 0)
    turned = vectors.T @ wanted
    best = None
    for penalty in PENALTIES:
        shrunk = values / (values + penalty)
        leverage = np.square(vectors) @ shrunk
        fitted = vectors @ (shrunk[:, None] * turned)
        left_out = (wanted - fitted) / (1 - leverage)[:, None]
        error = float(np.square(left_out).mean())
        if best is None or error < best[0]:
            best = (error, penalty, fitted)
    _, penalty, fitted = best
    _, basis = np.linalg.eigh(fitted @ fitted.T)
    output = np.linalg.qr((basis[:, -RANK:].T @ fitted).T)[0].T
    dual = vectors @ ((turned @ output.T) / (values + penalty)[:, None])
    return centred.T @ dual, output, middle, mean


@functools.lru_cache(maxsize=4)
def model(ngrams, prefill, decode, learned_from, text):
    (features, targets), _ = data(ngrams, prefill, decode, learned_from, text)
    return reduced_rank(features, targets)


def squared(predicted, wanted):
    return float(np.square(predicted - wanted).mean())


def ridge_fit(ngrams, prefill, decode, learned_from, text):
    (features, targets), (unseen, wanted) = data(ngrams, prefill, decode, learned_from, text)
    start = time.perf_counter()
    inputs, output, middle, mean = reduced_rank(features, targets)
    seconds = time.perf_counter() - start
    predicted = np.maximum((unseen - middle) @ inputs @ output + mean, 0)
    return {"seconds": [seconds], "squared": squared(predicted, wanted)}


def ridge_cv(ngrams, prefill, decode, learned_from, text):
    from sklearn.linear_model import RidgeCV

    (features, targets), (unseen, wanted) = data(ngrams, prefill, decode, learned_from, text)
    start = time.perf_counter()
    found = RidgeCV(alphas=PENALTIES).fit(features, targets)
    seconds = time.perf_counter() - start
    own = load(prefill)[learned_from:]
    return {
        "seconds": [seconds],
        "squared": squared(np.maximum(found.predict(unseen), 0), wanted),
        "mean_squared": squared(targets.mean(axis=0), wanted),
        "own_squared": squared(own, wanted),
    }


def ridge_text(ngrams, prefill, decode, learned_from, texts, calls):
    from sklearn.feature_extraction.text import HashingVectorizer

    inputs, output, middle, mean = model(ngrams, prefill, decode, learned_from, True)
    shift = mean - middle @ inputs @ output
    vectorizer = HashingVectorizer(analyzer="char", ngram_range=(1, 4), n_features=BUCKETS, alternate_sign=False, norm=None)
    texts = [bytes(row.astype(np.uint8)).decode() for row in load(texts)]

    def predict(text):
        found = vectorizer.transform([text])
        values = np.log1p(found.data)
        values /= np.sqrt(values @ values)
        return np.maximum(values @ inputs[found.indices] @ output + shift, 0)

    # Its hash is not the one that was learned with, so it predicts nonsense, in the time that sense would take.
    predict(texts[0])
    seconds = []
    for call in range(calls):
        text = texts[call % len(texts)]
        start = time.perf_counter()
        predict(text)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds}


def ridge_counts(ngrams, prefill, decode, learned_from, calls):
    inputs, output, middle, mean = model(ngrams, prefill, decode, learned_from, False)
    shift = mean - middle @ inputs @ output
    rows = load(prefill)[learned_from:]
    seconds = []
    for call in range(calls):
        row = rows[call % len(rows)]
        start = time.perf_counter()
        np.maximum(row @ inputs @ output + shift, 0)
        seconds.append(time.perf_counter() - start)
    return {"seconds": seconds}
