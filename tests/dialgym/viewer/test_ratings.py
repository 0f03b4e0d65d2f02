"""Two policies on the same seeds, ratings of replies, and the files that they are kept in."""

import json
import multiprocessing

import pytest

import dialgym
from dialgym.viewer.api import open_viewer
from dialgym.viewer.pairs import parting
from dialgym.viewer.query import Query
from dialgym.viewer.ratings import PREFERENCES, SCORES, TIES, Ratings

SMALL = "dialgym/Wordle-20-v0"


@pytest.fixture
def stored(tmp_path):
    pytest.importorskip("pyarrow")
    for policy in ("random", "optimal"):
        dialgym.collect(SMALL, policy, 6, path=tmp_path / policy)
    return [str(tmp_path / "random"), str(tmp_path / "optimal")]


def viewer_of(stored, tmp_path):
    return open_viewer(stored, tmp_path / "ratings")


def compared(viewer, first, second, **more):
    return viewer.compare(Query({"first": first, "second": second, "env": SMALL, **more}))


def turns(*texts):
    return {"turns": [{"text": text, "said": i % 2 == 0} for i, text in enumerate(texts)]}


def test_where_dialogues_part():
    found = parting(turns("a", "1", "b", "2"), turns("a", "1", "c", "3"))
    assert found is not None
    assert (found.turn, found.context, found.replies) == (2, ("a", "1"), ("b", "c"))
    assert parting(turns("a", "1", "b"), turns("a", "2", "c")) is None  # another answer before
    assert parting(turns("a", "1"), turns("a", "1")) is None
    assert parting(turns("a", "1"), turns("a", "1", "b")) is None  # one ended before


def test_stored_dialogues_are_compared_seed_by_seed(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    found = compared(viewer, {"source": 0}, {"source": 1})
    assert [side["name"] for side in found["sides"]] == ["random", "optimal"]
    assert len(found["rows"]) == 6
    differences = [row["returns"][1] - row["returns"][0] for row in found["rows"]]
    assert found["difference"] == pytest.approx(sum(differences) / 6)
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]
    assert found["sides"][1]["wins"] == sum(d > 0 for d in differences)
    pair = viewer.pair(Query({"comparison": found["comparison"], "pair": 0}))
    seeds = {dialogue["seed"] for dialogue in pair["dialogues"]}
    assert seeds == {found["rows"][0]["seed"]}


def test_policies_that_play_now_meet_the_seeds_of_stored_dialogues(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    found = compared(viewer, {"source": 1}, {"policy": "optimal"}, episodes=6, seed=0)
    assert len(found["rows"]) == 6
    assert found["difference"] == 0
    assert viewer.inputs.sources[2].name == "optimal on Wordle-20"


def test_who_cannot_be_compared_is_told_so(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    with pytest.raises(ValueError, match=r"unknown policy 'optimall'.*Did you mean 'optimal'"):
        compared(viewer, {"source": 0}, {"policy": "optimall"})
    with pytest.raises(ValueError, match="have no dialogue of the same environment"):
        compared(viewer, {"source": 0}, {"policy": "random"}, seed=5)
    with pytest.raises(LookupError, match="no source 7"):
        compared(viewer, {"source": 7}, {"source": 0})
    with pytest.raises(ValueError, match="the request lacks 'policy'"):
        compared(viewer, {}, {"source": 0})


def test_preferences_are_kept_and_gone_on_with(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    number = compared(viewer, {"source": 0}, {"source": 1})["comparison"]
    first = viewer.next_pair(Query({"comparison": number}))
    assert first["done"] == 0
    left, right = first["next"]["replies"]
    prefer = {"comparison": number, "pair": first["next"]["number"], "verdict": "right"}
    told = viewer.prefer(Query(prefer))
    (row,) = viewer.ratings.read(PREFERENCES).values()
    assert (row["chosen"], row["rejected"]) == (right, left)
    assert row["context"] == [turn["text"] for turn in first["next"]["turns"]]
    assert row["policies"] == [told["right"], told["left"]]
    # another viewer goes on, with the sides exchanged too
    again = viewer_of(stored, tmp_path)
    for sides in ((0, 1), (1, 0)):
        number = compared(again, {"source": sides[0]}, {"source": sides[1]})["comparison"]
        found = again.next_pair(Query({"comparison": number}))
        assert found["done"] == 1
        assert found["next"]["key"] != first["next"]["key"]


def test_a_verdict_counts_whichever_of_two_views_is_the_first(tmp_path):
    pytest.importorskip("pyarrow")
    for view, policy in (("-act", "random"), ("", "greedy")):
        dialgym.collect(f"dialgym/TwentyQuestions{view}-v0", policy, 2, path=tmp_path / policy)
    viewer = viewer_of([str(tmp_path / name) for name in ("random", "greedy")], tmp_path)
    for done, sides in enumerate(((0, 1), (1, 0))):
        number = compared(viewer, *({"source": side} for side in sides))["comparison"]
        found = viewer.next_pair(Query({"comparison": number}))
        assert found["done"] == done
        prefer = {"comparison": number, "pair": found["next"]["number"], "verdict": "left"}
        viewer.prefer(Query(prefer))


def test_a_verdict_replaces_the_one_before_and_can_be_taken_back(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    number = compared(viewer, {"source": 0}, {"source": 1})["comparison"]
    pair = viewer.next_pair(Query({"comparison": number}))["next"]["number"]
    for verdict, kinds in (("left", (1, 0)), ("tie", (0, 1)), ("right", (1, 0))):
        counts = viewer.prefer(Query({"comparison": number, "pair": pair, "verdict": verdict}))
        assert (counts[PREFERENCES], counts[TIES]) == kinds
    assert viewer.unrate(Query({"key": counts["key"]}))[PREFERENCES] == 0
    with pytest.raises(LookupError, match="no such rating"):
        viewer.unrate(Query({"key": counts["key"]}))


def test_replies_get_numbers(stored, tmp_path):
    viewer = viewer_of(stored, tmp_path)
    viewer.score(Query({"source": 0, "row": 1, "place": 2, "score": 4}))
    (row,) = viewer.ratings.read(SCORES).values()
    said = viewer.dialogue(Query({"source": 0, "row": 1}))
    assert row["context"] == [turn["text"] for turn in said["turns"][:2]]
    assert (row["reply"], row["score"], said["scores"]) == (said["turns"][2]["text"], 4, {2: 4})
    viewer.score(Query({"source": 0, "row": 1, "place": 2, "score": 0}))
    assert viewer.ratings.counts()[SCORES] == 0
    with pytest.raises(LookupError, match="is no reply of the learner's"):
        viewer.score(Query({"source": 0, "row": 1, "place": 1, "score": 4}))
    with pytest.raises(ValueError, match="score of a reply must be a whole number from 1 to 5"):
        viewer.score(Query({"source": 0, "row": 1, "place": 2, "score": 6}))


def test_the_trainer_of_reward_models_reads_them(stored, tmp_path):
    pytest.importorskip("stable_baselines3")
    from agents.reward_model.pairs import read_examples

    viewer = viewer_of(stored, tmp_path)
    number = compared(viewer, {"source": 0}, {"source": 1})["comparison"]
    while (found := viewer.next_pair(Query({"comparison": number})))["next"]:
        pair = found["next"]["number"]
        viewer.prefer(Query({"comparison": number, "pair": pair, "verdict": "left"}))
    examples = read_examples(viewer.ratings.file(PREFERENCES))
    assert examples.kind == "preferences"
    assert len(examples) == found["total"] > 0
    for place, score in ((0, 5), (2, 1)):
        viewer.score(Query({"source": 0, "row": 1, "place": place, "score": score}))
    scored = read_examples(viewer.ratings.file(SCORES))
    assert (scored.kind, scored.scores.tolist()) == ("scores", [5.0, 1.0])


def test_a_file_of_something_else_is_left_alone(tmp_path):
    file = tmp_path / "preferences.jsonl"
    file.write_text('{"question": "?"}\n', "utf-8")
    with pytest.raises(ValueError, match=r"line 1: expected a rating.*--ratings"):
        Ratings(tmp_path)
    assert file.read_text("utf-8") == '{"question": "?"}\n'


def test_a_file_with_ends_of_lines_within_texts_is_gone_on_with(tmp_path):
    row = {"key": "a", "context": ["one\u2028two\x85"], "reply": "yes", "score": 3}
    text = json.dumps(row, ensure_ascii=False) + "\n"
    (tmp_path / "scores.jsonl").write_text(text, "utf-8")
    assert Ratings(tmp_path).read(SCORES) == {"a": row}


def put_some(folder, first):
    ratings = Ratings(folder)
    for number in range(first, first + 10):
        row = {"key": str(number), "context": [], "chosen": "a", "rejected": "b"}
        ratings.put(PREFERENCES, row)


@pytest.mark.slow
def test_two_viewers_write_into_one_folder(tmp_path):
    method = multiprocessing.get_context("spawn")
    workers = [method.Process(target=put_some, args=(tmp_path, start)) for start in (0, 10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    lines = (tmp_path / "preferences.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["key"] for line in lines} == {str(k) for k in range(20)}
