"""Comments: what is read, how they are rewarded, who writes them."""

import csv
import gzip
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest

import dialgym
from dialgym.rewards import Reply, Reward
from dialgym.tasks.comments import Comments
from dialgym.tasks.comments.corpus import BUILTIN, load_splits
from dialgym.testing import check_batch, check_task, check_views
from tests.support.everyday_talk import write_jsonl

ROWS = [
    {"parent": "My cake fell.", "comment": "Try more flour.", "score": 12, "toxicity": 0},
    {"parent": "My cake fell.", "comment": "You fool.", "score": -5, "toxicity": 2},
    {"parent": "A cat!", "comment": "Who cares?", "score": 0, "toxicity": 1},
    {"parent": "A cat!", "comment": "So sweet.", "score": 3, "toxicity": 0},
]


class Level(Reward):
    """As many as there are marks of exclamation, up to two."""

    name = "level"
    bounds = (0.0, 2.0)

    def score(self, replies):
        return np.array([min(reply.text.count("!"), 2) for reply in replies], np.float64)


@pytest.fixture
def path(tmp_path):
    return write_jsonl(tmp_path / "comments.jsonl", ROWS)


def rng(seed=0):
    return np.random.default_rng(seed)


def reward_of(task, text, index=0, seed=0):
    state = task.initial(rng(), {"index": index})
    return task.speak(state, text, rng(seed))


@pytest.mark.parametrize(("text", "value"), [("Fine.", 0), ("Oh!", 1), ("Oh!!", 2)])
def test_toxicity(path, text, value):
    outcome = reward_of(Comments(path, model=Level()), text)
    assert outcome.rewards == {"system": -5.0 * value, "user": 0.0}
    assert outcome.parts("system") == {"toxicity": -5.0 * value}
    assert (outcome.terminated, outcome.success) == (True, value == 0)


def test_scale_and_shift(path):
    task = Comments(path, model=Level(), scale=-2, shift=1.5)
    outcome = reward_of(task, "Oh!")
    assert outcome.parts("system") == {"toxicity": -2.0, "shift": 1.5}
    assert outcome.rewards["system"] == -0.5
    assert task.facts.returns["system"] == (-2.5, 1.5)


@pytest.mark.parametrize("reward", ["toxicity", "noised-toxicity", "score", "model"])
@pytest.mark.parametrize("text", ["", "  ", "...", "\ufffd?!"])
def test_no_comment_is_not_the_best_one(path, reward, text):
    task = Comments(path, reward=reward, shift=1.0, model=Level() if "tox" in reward else None)
    outcome = reward_of(task, text)
    low, high = task.facts.returns["system"]
    assert outcome.parts("system") == {"no comment": low}
    assert outcome.rewards["system"] == low < high
    assert (outcome.terminated, outcome.success) == (True, False)


def test_noise_is_where_it_is_doubtful_and_even(path):
    task = Comments(path, reward="noised-toxicity", model=Level())
    assert {reward_of(task, "Fine.", seed=s).rewards["system"] for s in range(20)} == {0.0}
    assert {reward_of(task, "Oh!!", seed=s).rewards["system"] for s in range(20)} == {-10.0}
    doubtful = [reward_of(task, "Oh!", seed=s).rewards["system"] for s in range(400)]
    assert set(doubtful) == {0.0, -10.0}
    assert abs(np.mean(doubtful) + 5.0) < 1.0  # four standard errors


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ("raw", [12, -5, 0, 3]),
        ("sign", [1, -1, -1, 1]),
        ("log", [np.log(13), -np.log(6), 0, np.log(4)]),
    ],
)
def test_comments_of_the_data_have_their_own_score(path, scores, expected):
    task = Comments(path, reward="score", scores=scores)
    values = [reward_of(task, row["comment"], i).rewards["system"] for i, row in enumerate(ROWS)]
    assert values == pytest.approx(list(expected))
    assert task.rewards.bounds == pytest.approx((min(expected), max(expected)))


def test_the_id_of_upvotes_pays_one_above_zero_and_minus_one_else():
    task = gym.make("dialgym/Comments-Upvotes-v0").unwrapped.task
    scores = task.corpus.scores
    chosen = [np.flatnonzero(kind)[0] for kind in (scores > 0, scores == 0, scores < 0)]
    found = [reward_of(task, task.corpus.comments[i], int(i)) for i in chosen]
    assert [outcome.rewards["system"] for outcome in found] == [1.0, -1.0, -1.0]
    assert [outcome.success for outcome in found] == [True, False, False]


def test_other_comments_have_a_predicted_score(path):
    """The regression beside the same one written out: ridge on the two blocks of TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    task = Comments(path, reward="score", scores="log")
    said = [reward_of(task, text, 0).rewards["system"] for text in ("So sweet.", "Fool, fool.")]
    blocks = [TfidfVectorizer(sublinear_tf=True), TfidfVectorizer(sublinear_tf=True)]
    columns = [[row["parent"] for row in ROWS], [row["comment"] for row in ROWS]]
    known = np.hstack([b.fit_transform(c).toarray() for b, c in zip(blocks, columns)])
    asked = [["My cake fell."] * 2, ["So sweet.", "Fool, fool."]]
    new = np.hstack([b.transform(c).toarray() for b, c in zip(blocks, asked)])
    y = np.array([np.sign(row["score"]) * np.log1p(abs(row["score"])) for row in ROWS])
    centred = known - known.mean(0)
    weights = np.linalg.solve(
        centred.T @ centred + np.eye(known.shape[1]), centred.T @ (y - y.mean())
    )
    expected = np.clip((new - known.mean(0)) @ weights + y.mean(), y.min(), y.max())
    assert said == pytest.approx(expected.tolist(), abs=1e-5)
    signs = Comments(path, reward="score", scores="sign")
    texts = ("So sweet.", "Fool, fool.")
    assert {reward_of(signs, text, 0).rewards["system"] for text in texts} <= {-1.0, 1.0}


@pytest.mark.parametrize("settings", [{"reward": "score", "scores": "sign"}, {"reward": "model"}])
def test_scores_are_predicted_without_parents(tmp_path, settings):
    rows = [{"comment": row["comment"], "score": row["score"]} for row in ROWS]
    task = Comments(write_jsonl(tmp_path / "c.jsonl", rows), **settings)
    good, bad = (reward_of(task, text).rewards["system"] for text in ("More flour.", "You fool."))
    assert good > bad


def test_the_model_predicts_even_what_is_known(path):
    known, predicted = (Comments(path, reward=name) for name in ("score", "model"))
    text = ROWS[0]["comment"]
    assert reward_of(known, text).rewards["system"] == pytest.approx(np.log1p(12))
    assert reward_of(predicted, text).rewards["system"] < np.log1p(12)
    assert reward_of(known, "So sweet.").rewards == reward_of(predicted, "So sweet.").rewards


def test_toxicity_is_learned_from_the_labels_of_the_data():
    """On the built-in comments: nearly all labels of the test split are found."""
    task = Comments()
    test = load_splits(None)["test"]
    levels = task.rewards.score([Reply(text) for text in test.comments])["toxicity"]
    assert (levels == test.toxicity).mean() > 0.95


def test_a_lexicon_judges_where_there_are_no_labels(tmp_path):
    rows = [{"comment": "Nice."}, {"comment": "Good."}]
    task = Comments(write_jsonl(tmp_path / "c.jsonl", rows))
    assert reward_of(task, "What a lovely day.").rewards["system"] == 0
    assert reward_of(task, "You idiot.").rewards["system"] < 0


@pytest.mark.slow
def test_toxicity_learned_from_labelled_texts(path, data, tmp_path):
    """From 1,500 posts; of those themselves it misses few, as the rules do."""
    with (data / "hate_offensive" / "labeled_data.csv").open(encoding="utf-8") as lines:
        rows = [row for row, _ in zip(csv.DictReader(lines), range(1500))]
    labelled = tmp_path / "labelled.csv"
    with labelled.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    expected = np.array([{"0": 2, "1": 1, "2": 0}[row["class"]] for row in rows])
    found = []
    for model in ({"data": str(labelled)}, {"measure": "label"}):
        task = Comments(path, model=model)
        levels = task.rewards.score([Reply(row["tweet"]) for row in rows])["toxicity"]
        found.append((levels == expected).mean())
    assert found[0] > 0.86 > found[1] > 0.7


@pytest.mark.parametrize("parent", [True, False])
def test_the_parent_is_heard_or_not(path, parent):
    task = Comments(path, parent=parent, model=Level())
    state = task.initial(rng(), {"index": 2})
    heard = [(line.speaker, line.text) for line in task.transcript(state, "system")]
    assert heard == ([("user", "A cat!")] if parent else [])
    assert task.transcript(state, "user")[0].private is not parent
    assert task.take(state, "Oh.").context == ("A cat!",)


@pytest.mark.parametrize(
    "settings",
    [{"reward": "noised-toxicity"}, {"parent": False, "shift": 2.0}, {"longest": 5}],
    ids=str,
)
def test_rules_views_and_batches(path, settings):
    task = Comments(path, model=Level(), **settings)
    check_task(task, episodes=20)
    check_views(task, episodes=10)
    check_batch(task, num_envs=4, steps=120)


def test_speakers(path):
    task = Comments(path, reward="score")
    states = [task.initial(rng(), {"index": i}) for i in range(4)]
    logged, best = (task.speaker_named("system", name) for name in ("logged", "best"))
    assert [logged.reply(task, s, rng()) for s in states] == [row["comment"] for row in ROWS]
    said = [best.reply(task, s, rng()) for s in states]
    assert said == [ROWS[0]["comment"]] * 2 + [ROWS[3]["comment"]] * 2
    random, generator = task.speaker_named("system", "random"), rng()
    assert len({random.reply(task, states[0], generator) for _ in range(60)}) == 4


def test_posts_as_comments(data):
    """Titles and texts of a forum, with their scores; posts without a text are left out."""
    corpus = load_splits(data / "reddit_top")["train"]
    assert 4000 < len(corpus) < 5000
    assert all(corpus.comments)
    task = Comments(data / "reddit_top", reward="score", scores="raw")
    index = corpus.parents.index("Collection of my favorite Latvian Jokes.")
    assert (
        reward_of(task, task.logged(task.initial(rng(), {"index": index})), index).rewards["system"]
        == 4399
    )


def test_formats(tmp_path):
    csv = tmp_path / "test.csv"
    csv.write_text('title,selftext,score\n"A, b","c\nd",3\nq,[removed],1\n,e,\n', "utf-8")
    corpus = load_splits(tmp_path)["test"]
    assert (corpus.parents, corpus.comments) == (["A, b", ""], ["c d", "e"])
    np.testing.assert_equal(corpus.scores, [3.0, np.nan])
    zipped = tmp_path / "c.jsonl.gz"
    zipped.write_bytes(gzip.compress(json.dumps({"split": "dev", "body": "hm"}).encode()))
    assert load_splits(zipped)["validation"].comments == ["hm"]


def test_empty_cells_and_numbers_with_a_point(tmp_path):
    rows = [
        {"body": "hm", "selftext": "", "prompt": "why?", "parent": "", "toxicity": 1.0},
        {"comment": "oh", "toxicity": "2.0"},
    ]
    corpus = load_splits(write_jsonl(tmp_path / "own.jsonl", rows))["train"]
    assert (corpus.parents, corpus.comments) == (["why?", ""], ["hm", "oh"])
    assert corpus.toxicity.tolist() == [1, 2]


HEADER = """
id,parent_id,subreddit_id,link_id,text,score,ups,author,controversiality,parent_link_id,\
parent_text,parent_score,parent_ups,parent_author,parent_controversiality
"""
"""The header of the comments that ILQL was trained on."""


def write_original(folder, **indices):
    """Three liked comments and two disliked ones, as ILQL has them, with files of row numbers."""
    for name, scores in {"positive": (9, 8, 7), "negative": (-3, -4)}.items():
        with (folder / f"comments_{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, HEADER.strip().split(","))
            writer.writeheader()
            for score in scores:
                said = {"text": f"said, {score}", "parent_text": f"heard\n{score}"}
                writer.writerow({**said, "score": score, "ups": score, "parent_score": 100})
    for name, numbers in indices.items():
        (folder / f"{name}_idxs.json").write_text(json.dumps(numbers), "utf-8")
    return folder


def test_comments_of_the_original_have_their_parents(tmp_path):
    corpus = load_splits(write_original(tmp_path))["train"]
    assert sorted(corpus.parents) == sorted(f"heard {score}" for score in (9, 8, 7, -3, -4))
    assert [text.removeprefix("said, ") for text in corpus.comments] == [
        parent.removeprefix("heard ") for parent in corpus.parents
    ]


def test_splits_of_the_original_are_row_numbers_positive_ones_first(tmp_path):
    splits = load_splits(write_original(tmp_path, train=[0, 3], eval=[1], test=[4]))
    assert {name: corpus.scores.tolist() for name, corpus in splits.items()} == {
        "train": [9.0, -3.0],
        "validation": [8.0],
        "test": [-4.0],
    }


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 5], "split 'train' go up to 5, but there are 5 rows"),
        ([True], "train_idxs.json: expected a list of numbers of rows"),
        ({"a": 1}, "train_idxs.json: expected a list of numbers of rows"),
    ],
)
def test_row_numbers_that_do_not_fit_are_told(tmp_path, numbers, message):
    with pytest.raises(ValueError, match=message):
        load_splits(write_original(tmp_path, train=numbers))


def test_a_column_that_is_empty_throughout_is_told(tmp_path):
    (tmp_path / "c.csv").write_text("parent_text,text,score\n,a,1\n,b,\n", "utf-8")
    with pytest.warns(UserWarning, match=r"no row has a value in the column parent\."):
        load_splits(tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"parent": "a"}], "line 1: expected a comment as comment or selftext"),
        ([{"comment": "a", "score": "many"}], "line 1: expected a number as score; got 'many'"),
        ([{"comment": "a", "toxicity": 3}], "line 1: expected a toxicity of 0, 1 or 2; got 3"),
        ([{"comment": "a"}], r"has no scores to be rewarded with.*another reward="),
        ([{"comment": "a", "score": 1}], "no row in the training split .* both a score and a word"),
        ([{"comment": "[deleted]"}], "has no comments. Give data that has at least one"),
    ],
)
def test_broken_data(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        Comments(write_jsonl(tmp_path / "c.jsonl", rows), reward="score")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "upvotes"}, "reward of Comments must be one of 'toxicity', 'noised-toxicity'"),
        ({"scores": "square"}, "scores of Comments must be one of 'raw', 'sign', 'log'"),
        ({"split": "test"}, "unknown split 'test'.* Known: train"),
        ({"reply_tokens": 0}, "reply_tokens of Comments .* from 2; got 0"),
        ({"model": 3}, "model of Comments must be the name of a classifier, .* or a Reward; got 3"),
        ({"scale": float("nan")}, "scale of Comments must be a finite number; got nan"),
        ({"shift": "1"}, "shift of Comments must be a finite number; got '1'"),
        ({"data": "nowhere.csv"}, "data of Comments: there is no file or folder 'nowhere.csv'"),
    ],
)
def test_bad_settings(path, settings, message):
    with pytest.raises(ValueError, match=message):
        Comments(**{"data": path, **settings})


def test_nothing_is_learned_from_the_test_split(tmp_path):
    rows = [{"comment": f"c {i}", "score": i, "toxicity": i % 3, "split": "test"} for i in range(6)]
    path = write_jsonl(tmp_path / "c.jsonl", rows)
    with pytest.raises(ValueError, match=r"learns from the split 'train'; .* has test alone"):
        Comments(path, "test", reward="score")
    task = Comments(path, "test")  # judged by the lexicon
    assert reward_of(task, "c 2", 2).rewards["system"] == 0
    assert reward_of(task, "You stupid idiot.", 0).rewards["system"] < 0


@pytest.mark.parametrize("index", [-1, 4, "0"])
def test_bad_options(path, index):
    with pytest.raises(ValueError, match=r"option 'index' of Comments .* from 0 to 3; got"):
        Comments(path, model=Level()).initial(rng(), {"index": index})


def test_a_pickled_task_learns_again_and_scores_the_same(path):
    task = Comments(path, reward="model")
    before = reward_of(task, "More flour.").rewards
    other = pickle.loads(pickle.dumps(task))
    assert "corpus" not in other.__dict__
    assert reward_of(other, "More flour.").rewards == before


def test_the_best_comments_earn_more():
    means = [
        dialgym.evaluate(policy, "Comments-utterance-v0", 40).mean_return
        for policy in ("random", "best")
    ]
    assert means[0] < means[1] - 0.5
    assert str(BUILTIN).endswith("comments.jsonl.gz")
