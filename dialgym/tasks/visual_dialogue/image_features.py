"""Features of images from a file, in the order of the images that are asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dialgym.io.archives import SPLITS, check_expansion
from dialgym.optional import require
from dialgym.tasks.visual_dialogue.hashing import normalised

Reader = Callable[[Path], Mapping[str, np.ndarray]]
PREFIX = "images_"
"""Of a data set's name, before that of its split."""
IDS = ("image_ids", "image_id")
LAYOUT = "features (n, F), or (n, boxes, F), and image_ids (n,)"


def read_features(path: Any, image_ids: Sequence[int], split: str | None = None) -> np.ndarray:
    """The features of some images as (n, F) float32, rows of length 1.

    Args:
        path: an ``.npz`` or HDF5 file (``.h5``, ``.hdf5``) with ``features`` and ``image_ids``;
            those of the VisDial challenge have boxes too, (n, boxes, F), whose mean is taken. Or an
            ``.npy``, or an HDF5 file with a data set ``images_SPLIT`` for each split, as the
            original's ``data_img.h5``, with a row for each of the images in their order.
        image_ids: of the images.
        split: of the images; None for that of a file which has one alone.

    Raises:
        ValueError: there is no such file, it has another layout, or lacks an image or the split.
    """
    file = Path(str(path)).expanduser()
    if not file.is_file():
        raise ValueError(f"image features: there is no file {str(path)!r}. Check the path.")
    hdf5 = partial(_from_hdf5, split=split)
    readers: dict[str, Reader] = {
        ".npz": _from_npz,
        ".npy": _from_npy,
        ".h5": hdf5,
        ".hdf5": hdf5,
    }
    if file.suffix not in readers:
        endings = ", ".join(readers)
        raise ValueError(f"image features {str(path)!r}: expected one of {endings}.")
    try:
        arrays = readers[file.suffix](file)
    except (OSError, ValueError, EOFError, BadZipFile, MemoryError, RuntimeError) as error:
        raise ValueError(f"image features {str(path)!r}: {error}") from error
    return normalised(_rows(arrays, image_ids, str(path)))


def _from_npz(path: Path) -> Mapping[str, np.ndarray]:
    check_expansion(path)
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _from_npy(path: Path) -> Mapping[str, np.ndarray]:
    return {"features": np.load(path, mmap_mode="r", allow_pickle=False)}


def _from_hdf5(path: Path, split: str | None) -> Mapping[str, np.ndarray]:
    h5py = require("h5py", "data", f"features in {path.name}")
    with h5py.File(path, "r") as file:
        wanted = {name: name for name in ("features", *IDS) if name in file}
        if own := {} if "features" in wanted else _by_split(file):
            wanted["features"] = _of_split(own, split)
        return {name: file[own][()] for name, own in wanted.items()}


def _by_split(names: Iterable[str]) -> dict[str, str]:
    """The data sets called ``images_SPLIT``, by what their splits are called here."""
    found = {name.removeprefix(PREFIX): name for name in names if name.startswith(PREFIX)}
    return {SPLITS.get(split, split): name for split, name in found.items()}


def _of_split(names: Mapping[str, str], split: str | None) -> str:
    if split is not None and split in names:
        return names[split]
    if split is None and len(names) == 1:
        return next(iter(names.values()))
    got = ", ".join(names.values())
    wanted = "one data set images_SPLIT" if split is None else f"images of the split {split!r}"
    raise ValueError(f"expected {wanted}; got {got}. Give the split that the file has.")


def _rows(arrays: Mapping[str, np.ndarray], image_ids: Sequence[int], where: str) -> np.ndarray:
    features = arrays.get("features")
    if features is None or features.ndim not in (2, 3) or not np.isrealobj(features):
        got = ", ".join(f"{name} {value.shape}" for name, value in arrays.items()) or "nothing"
        raise ValueError(f"image features {where!r}: expected {LAYOUT}; got {got}.")
    rows = features[_order(arrays, image_ids, len(features), where)]
    rows = np.asarray(rows, np.float64)
    if not np.isfinite(rows).all():
        raise ValueError(f"image features {where!r}: expected finite numbers; some are not.")
    return rows.mean(1) if rows.ndim == 3 else rows


def _order(
    arrays: Mapping[str, np.ndarray], image_ids: Sequence[int], count: int, where: str
) -> np.ndarray:
    """(n,) int64, the place of each image in the file."""
    known = next((arrays[name] for name in IDS if name in arrays), None)
    if known is None:
        if count != len(image_ids):
            raise ValueError(
                f"image features {where!r}: {count} rows without image_ids, for "
                f"{len(image_ids)} images. Give a row for each image, or add image_ids."
            )
        return np.arange(count)
    if known.shape != (count,):
        raise ValueError(
            f"image features {where!r}: {count} rows, but image_ids of the shape {known.shape}."
        )
    places = {int(image): place for place, image in enumerate(known)}
    missing = [image for image in image_ids if image not in places]
    if missing:
        raise ValueError(
            f"image features {where!r}: no features of {len(missing)} of {len(image_ids)} images, "
            f"such as {missing[0]}. Give features of the same split."
        )
    return np.array([places[image] for image in image_ids], np.int64)
