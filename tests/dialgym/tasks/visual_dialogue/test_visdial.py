"""The images of VisDial: the file's form, what is passed over, and what is said of broken data."""

import gzip
import json
import pickle
import zipfile

import numpy as np
import pytest

from dialgym.tasks.visual_dialogue import visdial
from dialgym.tasks.visual_dialogue.pool import make_pool
from dialgym.tasks.visual_dialogue.visdial import VisDialPool
from tests.support.toy_visdial import answers_of, visdial05_json, visdial_json, write_visdial


def test_numbers_become_texts(tmp_path):
    pool = VisDialPool(write_visdial(tmp_path))
    assert len(pool) == 8
    first = pool.dialogues[0]
    assert first.image_id == 100
    assert first.caption == pool.captions[0] == "a dog in picture 0"
    assert first.rounds == tuple(
        zip(
            (
                "what color is the dog?",
                "is it sunny?",
                "how many people are there?",
                "can you see a dog?",
            ),
            answers_of(0),
        )
    )
    # the second and fourth list of options has a way to say that one cannot tell, the others none
    assert first.evasions == ("can't tell", "hard to tell", "can't tell", "hard to tell")
    assert pool.description(0)[0] == "what color is the dog? brown"
    assert pool.most_lines == 4
    assert pool.longest == max(len(line) for i in range(8) for line in pool.description(i))


def test_features_of_words_have_length_one_and_differ(tmp_path):
    pool = VisDialPool(write_visdial(tmp_path), hashed=64)
    assert pool.features.shape == (8, 64)
    assert pool.features.dtype == np.float32
    assert np.allclose(np.linalg.norm(pool.features, axis=1), 1)
    products = pool.features @ pool.features.T
    assert (products[~np.eye(8, dtype=bool)] < 0.99).all()


@pytest.mark.parametrize("form", ["json", "gz", "zip", "folder"])
def test_the_same_images_in_every_form(tmp_path, form):
    source = write_visdial(tmp_path)
    wanted = VisDialPool(source)
    if form == "gz":
        path = tmp_path / "visdial_1.0_val.json.gz"
        path.write_bytes(gzip.compress(source.read_bytes()))
    elif form == "zip":
        path = tmp_path / "visdial.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(source, "visdial_1.0_val.json")
    elif form == "folder":
        path = tmp_path / "folder"
        path.mkdir()
        write_visdial(path)
        (path / "visdial_1.0_val_dense_annotations.json").write_text("[1, 2]")
        (path / "notes.txt").write_text("nothing")
    else:
        path = source
    pool = VisDialPool(path)
    assert pool.dialogues == wanted.dialogues
    assert np.array_equal(pool.features, wanted.features)


def test_an_image_that_two_files_have_is_taken_from_the_first(tmp_path):
    write_visdial(tmp_path, "a.json", count=4)
    write_visdial(tmp_path, "b.json", count=4, first_id=102)
    pool = VisDialPool(tmp_path)
    assert [dialogue.image_id for dialogue in pool.dialogues] == [100, 101, 102, 103, 104, 105]
    assert pool.captions[2] == "a horse in picture 2"


def test_the_test_split_ends_with_a_question_alone(tmp_path):
    content = visdial_json(count=2, split="test")
    for key in ("answer", "gt_index"):
        del content["data"]["dialogs"][0]["dialog"][3][key]
    (tmp_path / "t.json").write_text(json.dumps(content))
    pool = VisDialPool(tmp_path / "t.json")
    assert [len(dialogue.rounds) for dialogue in pool.dialogues] == [3, 4]


def test_the_list_of_v05_has_the_same_dialogues_by_row(tmp_path):
    path = tmp_path / "visdial_0.5_train.json"
    path.write_text(json.dumps(visdial05_json()))
    (tmp_path / "train_rank_reward_cache1.json").write_text("[[0.5, 0.1]]")
    known, pool = VisDialPool(write_visdial(tmp_path, "a.zip.json")), VisDialPool(path, "train")
    assert pool.captions == known.captions
    assert [d.rounds for d in pool.dialogues] == [d.rounds for d in known.dialogues]
    assert [dialogue.image_id for dialogue in pool.dialogues] == list(range(8))
    (tmp_path / "a.zip.json").unlink()
    assert VisDialPool(tmp_path).dialogues == pool.dialogues  # the cache is passed over
    features = np.random.default_rng(0).normal(size=(8, 5))
    np.save(tmp_path / "features.npy", features)
    own = VisDialPool(path, features=tmp_path / "features.npy").features
    assert np.allclose(own, features / np.linalg.norm(features, axis=1, keepdims=True))


def test_splits_are_told_apart(tmp_path):
    write_visdial(tmp_path, "a.json", count=3, split="train")
    write_visdial(tmp_path, "b.json", count=4, split="val", first_id=900)
    with pytest.raises(ValueError, match=r"has the splits train, validation: give split="):
        VisDialPool(tmp_path)
    assert len(VisDialPool(tmp_path, "train")) == 3
    assert len(VisDialPool(tmp_path, "val")) == len(VisDialPool(tmp_path, "validation")) == 4
    assert len(VisDialPool(tmp_path, "val", size=2)) == 2
    with pytest.raises(ValueError, match="unknown split 'test'"):
        VisDialPool(tmp_path, "test")


def test_typographic_marks_become_those_of_ascii(tmp_path):
    content = visdial_json(count=2)
    content["data"]["answers"][4] = "I can’t see  it…"
    (tmp_path / "t.json").write_text(json.dumps(content))
    assert VisDialPool(tmp_path / "t.json").dialogues[0].rounds[0][1] == "I can't see it..."


def test_a_pool_is_made_by_name_and_again_in_another_process(tmp_path):
    path = write_visdial(tmp_path)
    pool = make_pool(f"visdial:{path}")
    assert isinstance(pool, VisDialPool)
    sized = make_pool({"name": "visdial", "data": str(path), "size": 3})
    copy = pickle.loads(pickle.dumps(sized))
    assert copy.captions == sized.captions
    assert np.array_equal(copy.features, sized.features)


def test_data_of_the_hub_is_fetched(tmp_path, pretend_hub):
    write_visdial(tmp_path)
    pretend_hub.add("someone/visdial", tmp_path)
    assert len(VisDialPool("hf:someone/visdial")) == 8
    assert pretend_hub.asked == [("someone/visdial", "dataset", None, visdial.PATTERNS)]


def broken(change) -> dict:
    content = visdial_json(count=2)
    change(content["data"])
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "expected a VisDial v1.0 JSON"),
        ({"data": {"dialogs": []}}, "expected a list as data.questions; got None"),
        (broken(lambda data: data["dialogs"][1].pop("caption")), r"dialogs\[1\].*KeyError"),
        (broken(lambda data: data["dialogs"][0].update(dialog=3)), r"dialogs\[0\].*TypeError"),
        (
            broken(lambda data: data["dialogs"][0]["dialog"][0].update(question=999)),
            r"dialogs\[0\].*IndexError",
        ),
        (
            broken(lambda data: data["dialogs"][0]["dialog"][0].update(answer=-1)),
            r"dialogs\[0\].*IndexError",
        ),
        (broken(lambda data: data.update(dialogs=[])), "expected a VisDial v1.0 JSON"),
        ([*visdial05_json(1), {"caption": "x"}], r"t\.json, dialogs\[1\].*KeyError"),
    ],
)
def test_broken_data_is_told(tmp_path, content, message):
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        VisDialPool(tmp_path / "t.json")


def test_no_json_and_no_file_are_told(tmp_path):
    (tmp_path / "t.json").write_text('{"data": ')
    with pytest.raises(ValueError, match=r"t\.json: expected JSON"):
        VisDialPool(tmp_path / "t.json")
    with pytest.raises(ValueError, match="there is no file or folder"):
        VisDialPool(tmp_path / "none.json")
    with pytest.raises(ValueError, match="size of VisDialPool must be a whole number from 2 to 8"):
        VisDialPool(write_visdial(tmp_path), size=9)


def test_the_real_files(real_file):
    pool = VisDialPool(real_file("visdialconv"))
    assert len(pool) == 165  # 97 and 76 images, of which 8 are the same
    assert {len(dialogue.rounds) for dialogue in pool.dialogues} == {10}
    stallion = pool.dialogues[pool.captions.index(
        "beautiful stallion on a side road of a large farm"
    )]  # fmt: skip
    assert stallion.rounds[:2] == (("what color is the stallion?", "brown"), (
        "do you see a barn?", "no"))  # fmt: skip
    assert all(
        question.endswith("?") for dialogue in pool.dialogues for question, _ in dialogue.rounds
    )
