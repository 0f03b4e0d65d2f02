"""Features of images from files: each layout, the order of the images, and what is refused."""

import numpy as np
import pytest

from dialgym.tasks.visual_dialogue.image_features import read_features
from dialgym.tasks.visual_dialogue.visdial import VisDialPool
from tests.support.toy_visdial import write_visdial

IDS = [7, 3, 5]
ROWS = np.array([[3.0, 4.0], [0.0, 2.0], [5.0, 0.0], [1.0, 1.0]])
WANTED = np.array([[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]], np.float32)
"""Those of images 7, 3, 5, of length 1."""


def challenge(path):
    """HDF5 of the challenge: features of boxes, and image ids."""
    with pytest.importorskip("h5py").File(path, "w") as file:
        boxes = np.stack([ROWS[:3] - 1, ROWS[:3] + 1], 1)  # (3, 2, 2)
        file["features"], file["image_id"] = boxes[[2, 0, 1]], [5, 7, 3]
        file["objects"] = np.zeros(3)  # passed over


def original(path):
    """HDF5 of the original, in the order of the images."""
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["images_val"] = ROWS[:3]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("f.npz", lambda path: np.savez(path, features=ROWS[[1, 2, 3, 0]], image_ids=[3, 5, 9, 7])),
        ("f.npy", lambda path: np.save(path, ROWS[:3])),
        ("f.h5", challenge),
        ("f.h5", original),
    ],
    ids=["npz by ids", "npy in the order of the images", "challenge", "original"],
)
def test_features_of_each_form(tmp_path, name, write):
    write(tmp_path / name)
    found = read_features(tmp_path / name, IDS)
    assert found.dtype == np.float32
    assert np.allclose(found, WANTED)


def test_hdf5_with_several_splits_gives_that_of_the_images(tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = np.random.default_rng(0).normal(size=(3, 8, 5))
    with h5py.File(tmp_path / "data_img.h5", "w") as file:
        for name, features in zip(("train", "val", "test"), rows):
            file[f"images_{name}"] = features
    for split, features in zip(("train", "val", "test"), rows):
        found = write_visdial(tmp_path, f"visdial_1.0_{split}.json", split=split)
        pool = VisDialPool(found, features=tmp_path / "data_img.h5")
        lengths = np.linalg.norm(features, axis=1, keepdims=True)
        assert np.allclose(pool.features, features / lengths, atol=1e-6)


@pytest.mark.parametrize(
    ("names", "split", "message"),
    [
        (["images_train", "images_test"], "validation", "the split 'validation'; got images_t"),
        (["images_train"], "validation", "the split 'validation'; got images_train"),
        (["images_train", "images_val"], None, "one data set images_SPLIT; got images_train, im"),
    ],
)
def test_hdf5_without_the_split_is_refused(tmp_path, names, split, message):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name in names:
            file[name] = ROWS[:3]
    with pytest.raises(ValueError, match=message):
        read_features(tmp_path / "f.h5", IDS, split)


def test_a_pool_takes_them(tmp_path):
    rows = np.random.default_rng(0).normal(size=(8, 5))
    np.savez(tmp_path / "f.npz", features=rows, image_ids=np.arange(107, 99, -1))
    pool = VisDialPool(write_visdial(tmp_path), features=tmp_path / "f.npz")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose(pool.features, (rows / lengths)[::-1], atol=1e-6)
    assert pool.hashing is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": ROWS, "image_ids": [1, 2, 3, 7]}, "no features of 1 of 3 images, such as 5"),
        ({"features": ROWS}, "4 rows without image_ids, for 3 images"),
        ({"features": ROWS, "image_ids": [3, 5, 7]}, r"4 rows, but image_ids of the shape \(3,\)"),
        ({"features": ROWS[0], "image_ids": IDS}, r"expected features.*got features \(2,\)"),
        ({"other": ROWS}, r"expected features.*got other \(4, 2\)"),
        ({"features": np.full((3, 2), np.nan), "image_ids": IDS}, "expected finite numbers"),
        ({"features": np.array([{"a": 1}], object)}, "allow_pickle=False"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, arrays, message):
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_features(tmp_path / "f.npz", IDS)


def test_files_that_cannot_be_read_are_told(tmp_path):
    for name in ("f.npz", "f.npy"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(ValueError, match=f"image features .*{name}"):
            read_features(tmp_path / name, IDS)
    (tmp_path / "f.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"expected one of .npz, .npy, .h5, .hdf5"):
        read_features(tmp_path / "f.csv", IDS)
    with pytest.raises(ValueError, match="there is no file"):
        read_features(tmp_path / "none.npz", IDS)
