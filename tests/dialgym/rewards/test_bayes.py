"""The judge that no reward is: naive Bayes by hand, and how well it judges what people said."""

import pickle

import numpy as np
import pytest

from dialgym.registry import entry_of, make_task
from dialgym.rewards import Reply
from dialgym.rewards.bayes import Judge, features, naive_bayes

EXAMPLES = [("good tea", "kind"), ("good good cake", "kind"), ("bad tea", "mean")]


def test_features_are_words_and_pairs_once_with_the_ends():
    assert features("Tea, tea!") == ["tea", "< tea", "tea tea", "tea >"]
    assert features("") == ["< >"]


def test_probabilities_are_those_by_hand():
    found = naive_bayes(EXAMPLES, smoothing=0.5)
    seen = {
        label: [features(t) for t, own in EXAMPLES if own == label] for label in ("kind", "mean")
    }
    distinct = {f for lists in seen.values() for one in lists for f in one}
    odds = {}
    for label, lists in seen.items():
        total = sum(len(one) for one in lists) + 0.5 * len(distinct)
        odds[label] = len(lists) / 3
        for feature in features("bad cake, bad strudel"):
            if feature in distinct:
                odds[label] *= (sum(feature in one for one in lists) + 0.5) / total
    expected = [odds["kind"] / sum(odds.values()), odds["mean"] / sum(odds.values())]
    assert found.classes_.tolist() == ["kind", "mean"]
    assert found.predict_proba(["bad cake, bad strudel"])[0] == pytest.approx(expected)
    assert found.predict_proba(["strudel"])[0] == pytest.approx([2 / 3, 1 / 3])


def test_a_classifier_needs_two_classes():
    with pytest.raises(
        ValueError, match=r"two classes or more; got 1 texts of the classes \['a'\]"
    ):
        naive_bayes([("x", "a")])


def judge(**settings):
    return Judge(lambda: [(Reply(text), label) for text, label in EXAMPLES], **settings)


def test_a_reply_is_judged_by_its_own_label_or_by_what_is_wanted_of_all():
    replies = [Reply("good cake", (), (), {"act": act}) for act in ("kind", "mean")]
    assert judge().score(replies).tolist() == [1.0, 0.0]
    assert judge(wanted="mean").score([*replies, Reply("bad tea")]).tolist() == [0.0, 0.0, 1.0]
    assert judge().score([]).shape == (0,)


def test_what_is_no_reply_is_no_good_one():
    assert judge(wanted="kind").score([Reply("good"), Reply(" ...")]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("env_id", "bar"), [("DailyDialog-v0", 0.88), ("Comments-v0", 0.93)])
def test_it_judges_what_people_said_in_the_test_split(env_id, bar):
    pytest.importorskip("sklearn")
    test = make_task(entry_of(f"dialgym/{env_id}"), {"split": "test"})
    copy = pickle.loads(pickle.dumps(test.judge()))
    if env_id == "Comments-v0":
        truth = test.corpus.toxicity == 0
        replies = [Reply(text) for text in test.corpus.comments]
    else:
        replies = [test.first_reply(0, "", {"index": i}) for i in range(len(test.places))]
        replies = [reply._replace(text=reply.references[0]) for reply in replies]
        truth = np.ones(len(replies))
    assert np.mean(copy.score(replies) == truth) > bar


def test_tasks_without_a_judge_say_so():
    with pytest.raises(ValueError, match="Logged has no judge beside its rewards"):
        make_task(entry_of("dialgym/Logged-v0"), {}).judge()
