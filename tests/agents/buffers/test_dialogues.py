"""The memory of whole dialogues against a list of what was played."""

import numpy as np
import pytest
from gymnasium import spaces

from agents.buffers.dialogues import ActionChoice, DialogueMemory

BELIEFS, ACTS = spaces.Box(0, 1e6, (2,), np.float32), spaces.Discrete(3)


def memory(size, rows):
    return DialogueMemory(size, BELIEFS, ACTS, "cpu", rows)


def play(memory, steps, seed=0, cut=0.0):
    """Dialogues of random length in each row; a list of (rewards, cut) of those that ended.

    The reward of a decision is its number, which is also what was seen there.
    """
    rng, rows = np.random.default_rng(seed), memory.n_envs
    starts, now, ended = np.ones(rows, bool), [[] for _ in range(rows)], []
    for step in range(steps):
        reward = np.arange(rows) + rows * step
        seen = np.stack([reward, reward], 1)
        done = rng.random(rows) < 0.3
        truncated = done & (rng.random(rows) < cut)
        infos = [{"TimeLimit.truncated": bool(t)} for t in truncated]
        probs = np.tile([0.5, 0.25, 0.25], (rows, 1))
        choice = ActionChoice(reward % 3, probs > 0, probs, starts)
        memory.add(seen, seen + 0.5, choice, reward, done, infos)
        for row in range(rows):
            now[row].append(int(reward[row]))
            if done[row]:
                ended.append((now[row], bool(truncated[row])))
                now[row] = []
        starts = done
    return ended


def split(batch):
    """The same form, of a batch."""
    ends = np.flatnonzero(batch.last) + 1
    parts = np.split(batch.rewards.numpy().astype(int), ends[:-1])
    return [(part.tolist(), bool(batch.cut[end - 1])) for part, end in zip(parts, ends)]


@pytest.mark.parametrize("rows", [1, 3])
def test_new_dialogues_are_those_that_ended(rows):
    kept = memory(1000, rows)
    ended = play(kept, 50, cut=0.5)
    assert kept.n_unseen == len(ended)
    batch = kept.new()
    assert sorted(split(batch)) == sorted(ended)
    assert np.array_equal(batch.observations[:, 0], batch.rewards)
    assert np.array_equal(batch.after[:, 0], batch.rewards + 0.5)
    assert np.array_equal(batch.actions, batch.rewards % 3)
    assert np.array_equal(batch.behaviour, np.where(batch.actions == 0, 0.5, 0.25))
    assert batch.number.tolist() == [i for i, (r, _) in enumerate(split(batch)) for _ in r]
    kept.mark_seen()
    assert kept.n_unseen == 0


@pytest.mark.parametrize("seed", range(3))
def test_a_full_memory_holds_the_dialogues_that_it_still_has_whole(seed):
    rows, size = 2, 24
    kept = memory(rows * size, rows)
    ended = play(kept, 100, seed)
    oldest = rows * (100 - size)
    whole = [rewards for rewards, _ in ended if rewards[0] >= oldest]
    drawn = {tuple(rewards) for rewards, _ in split(kept.draw(500))}
    assert drawn == {tuple(rewards) for rewards in whole}


def test_dialogues_are_equally_likely():
    kept = memory(1000, 2)
    ended = play(kept, 30)
    np.random.seed(0)  # noqa: NPY002
    firsts = [rewards[0] for rewards, _ in split(kept.draw(20000))]
    shares = np.unique(firsts, return_counts=True)[1] / 20000
    assert len(shares) == len(ended)
    assert np.allclose(shares, 1 / len(ended), atol=0.015)


def test_a_dialogue_that_was_broken_off_is_forgotten():
    kept = memory(100, 1)
    seen, probs = np.ones((1, 2)), np.ones((1, 3)) / 3
    for reward, start, done in [(1, True, False), (2, False, False), (3, True, True)]:
        choice = ActionChoice(np.array([0]), probs > 0, probs, np.array([start]))
        kept.add(seen, seen, choice, np.array([reward]), np.array([done]), [{}])
    assert split(kept.new()) == [([3], False)]


def test_a_dialogue_that_does_not_fit_is_one_clear_error():
    kept = memory(8, 2)
    with pytest.raises(ValueError, match=r"a dialogue of \d+ decisions does not fit into 4, the"):
        play(kept, 200)
