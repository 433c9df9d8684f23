"""Holds what a converter wrote against the published folder that it read.

usage: PUBLISHED=folder CONVERTED=model.gguf pytest test_conversion.py
"""
import functools
import os

import numpy as np

import assay_gguf

TEXT = "The river rises in the mountains, flows west, and ends in the sea: 1,918 km, or \u00e0 peu pr\u00e8s.\n"
# What a type may lose of a number, in parts of the largest one of its row.
LOSS = {"F32": 0, "F16": 2**-11, "BF16": 2**-9, "Q8_0": 1 / 250}
MOST_NATS = 1e-3


@functools.cache
def models():
    """Exact products: what differs then differs in the files."""
    return [assay_gguf.Model(os.environ[name], precision="exact") for name in ("PUBLISHED", "CONVERTED")]


def test_tensors():
    published, converted = models()
    assert set(published.tensors) == set(converted.tensors)
    for name, tensor in converted.tensors.items():
        expected, found = published.tensor(name), converted.tensor(name)
        assert found.shape == expected.shape, name
        room = LOSS[tensor.type] * np.abs(expected).max(axis=-1, keepdims=True)
        assert (np.abs(found - expected) <= room).all(), name


def test_tokens():
    published, converted = models()
    for text in (TEXT, TEXT.upper(), "  def f(x):\n\treturn x ** 2\n"):
        assert published.tokenize(text).tolist() == converted.tokenize(text).tolist(), text


def test_log_probabilities():
    published, converted = models()
    found = assay_gguf.kld(converted, published, published.tokenize(TEXT))
    assert found["kld"].max() <= MOST_NATS, f"token {found['kld'].argmax() + 1}"
    assert np.abs(found["log_prob"] - found["base_log_prob"]).max() <= 0.1
