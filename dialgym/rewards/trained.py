"""Classifiers that were trained here, kept between runs under a digest of what they learnt from."""

import hashlib
import warnings
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dialgym.cache import cache_dir
from dialgym.files import write_atomically
from dialgym.rewards.base import Reply
from dialgym.rewards.classifier import BLOCKS, COLUMNS, Fit, TextClassifier, train

VERSION = 1
"""Of the features; a change of what the blocks read needs a new one."""
DEFAULT = Fit()
Example = tuple[Reply, str]


def trained_classifier(examples: Sequence[Example], fit: Fit = DEFAULT) -> TextClassifier:
    """The classifier of these examples: from the cache, or trained and kept there.

    A file that cannot be read is made anew; a cache that cannot be written is not an error.
    """
    path = cache_dir() / "classifiers" / f"{digest(examples, fit)}.npz"
    with suppress(OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
        return _read(path)
    replies, labels = zip(*examples) if examples else ((), ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the solver stopped at its last iteration
        classifier = train(replies, labels, fit)
    with suppress(OSError):
        write_atomically(path, lambda temporary: _write(temporary, classifier))
    return classifier


def digest(examples: Sequence[Example], fit: Fit) -> str:
    """What tells data and settings from others, as a short hexadecimal name."""
    blocks = [(read.__name__, scale) for read, scale in BLOCKS]
    found = hashlib.blake2b(repr((VERSION, blocks, COLUMNS, astuple(fit))).encode(), digest_size=16)
    for reply, label in examples:
        for text in (reply.text, reply.context[-1] if reply.context else None, label):
            found.update(b"\0" if text is None else b"\1" + text.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def _write(path: Path, classifier: TextClassifier) -> None:
    classes = np.array(classifier.classes)
    np.savez_compressed(path, classes=classes, weights=classifier.weights, biases=classifier.biases)


def _read(path: Path) -> TextClassifier:
    with np.load(path, allow_pickle=False) as kept:
        classes = tuple(str(name) for name in kept["classes"])
        return TextClassifier(classes, kept["weights"], kept["biases"])
