"""Mazes and houses that answer commands: rules, exact values, policies, sets of dialogues."""

import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import dialgym
from benchmarks.tables.lmrl import anchors_of, lmrl_score
from dialgym.tasks.belief_values import BeliefValues
from dialgym.tasks.maze import Maze
from dialgym.tasks.maze.drawings import carved
from dialgym.tasks.text_nav import TextNav
from dialgym.tasks.text_nav.houses import STEPS, build
from dialgym.testing import check_batch, check_task

SMALL = ("#######", "#  #  #", "## G ##", "#    ##", "#######")
WORLDS = {
    "maze": lambda **more: Maze(SMALL, turns=4, **more),
    "house": lambda **more: TextNav(rooms=3, doors=1, turns=4, **more),
}


def begun(task, name):
    """A dialogue from a beginning, in which the system is to speak."""
    state = task.initial(np.random.default_rng(0), {"start": name})
    task.speak(state, name, np.random.default_rng(0))
    return state


def say(task, state, *texts):
    """Rewards of the system, and what it is told last."""
    rng = np.random.default_rng(0)
    rewards = [task.speak(state, text, rng).rewards["system"] for text in texts]
    return rewards, state.lines[-1].text


def test_the_built_in_maze_has_the_published_size_goal_and_cells():
    task = Maze()
    assert (len(task.drawing), len(task.drawing[0]), len(task.cells)) == (10, 13, 26)
    assert task.drawing[8][6] == "G"


def test_a_walk_tells_position_and_walls_and_costs_a_point_a_step():
    task = Maze()
    state = begun(task, "start at 5 5")
    assert state.lines[-1].text == "goal 8 6 ; here 5 5 ; walls above below"
    assert say(task, state, "move up") == ([-1.0], "goal 8 6 ; here 5 5 ; walls above below")
    assert say(task, state, "Move  RIGHT") == ([-1.0], "goal 8 6 ; here 5 6 ; walls above")
    assert say(task, state, "jump") == ([-4.0], "goal 8 6 ; here 5 6 ; walls above")
    assert say(task, state, *["move down"] * 3) == ([-1.0, -1.0, 0.0], "this is the goal")
    assert state.over


def test_partly_observed_walls_alone_are_told_and_the_place_is_hidden():
    task = Maze(observation="partial")
    state = begun(task, "start at 5 5")
    assert say(task, state, "move right") == ([-1.0], "walls above")
    with pytest.raises(dialgym.tasks.HiddenStateError, match="not told 'place'"):
        int(task.observed(state, "system").place)
    assert (task.posterior(state) > 0).sum() == 1  # the only cell with that wall beside such one


def test_a_dialogue_without_the_goal_ends_after_its_turns():
    env = dialgym.make("Maze-utterance-v0", turns=3).unwrapped
    env.reset(seed=0, options={"start": "start at 2 1"})
    ends = [env.step("move up")[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (True, False)]


@pytest.mark.parametrize(
    ("drawing", "said"),
    [
        (["", "", ""], "three or more rows of the same length"),
        (np.array([["#", "#"]] * 3), "all around"),
        (["###", "#G#"], "three or more rows of the same length"),
        (["####", "#G #", "### "], "all around"),
        (["####", "#  #", "####"], "one goal"),
        (["#####", "#G# #", "#####"], "a way to the goal from each cell"),
    ],
)
def test_a_drawing_that_is_no_maze_is_refused(drawing, said):
    with pytest.raises(ValueError, match=f"maze of Maze: expected .*{said}"):
        Maze(drawing)


def test_settings_and_options_are_checked():
    with pytest.raises(ValueError, match="maze of Maze: expected 'double-t'"):
        Maze("spiral")
    with pytest.raises(ValueError, match="observation"):
        TextNav(observation="some")
    with pytest.raises(ValueError, match="option 'start' of Maze: expected one of its 25"):
        Maze().initial(np.random.default_rng(0), {"start": "start at 8 6"})
    with pytest.raises(ValueError, match=r"option 'start' of TextNav: expected .*; got \['x'\]"):
        TextNav().initial(np.random.default_rng(0), {"start": ["x"]})
    assert Maze(np.array(SMALL)).drawing == SMALL
    world = Maze(observation="partial").world
    with pytest.raises(ValueError, match="Maze: exact values need more than 43 beliefs"):
        BeliefValues(world, world.signals, 100, "Maze", most=43)


def test_mazes_of_a_seed_are_trees_and_differ():
    drawings = {carved(9, 11, seed) for seed in range(20)}
    assert len(drawings) == 20
    for drawing in drawings:
        task = Maze(drawing)
        open_sides = (
            ~np.array([task.walls(s) for s in task.world.signals[task.world.starts]])
        ).sum()
        ends = (task.world.after[task.world.ends] != np.flatnonzero(task.world.ends)).sum()
        assert open_sides + ends == 2 * (len(task.cells) - 1)  # each way from both its sides


def test_houses_of_a_seed_have_ways_both_ways_and_doors_on_them():
    for seed in range(30):
        house = build(seed, rooms=8, doors=2)
        assert house.door_count == 2
        assert len({*house.cells}) == 8
        for room, (ways, doors) in enumerate(zip(house.ways, house.doors)):
            for side, there in enumerate(ways):
                if there < 0:
                    assert doors[side] < 0
                    continue
                assert house.ways[there][(side + 2) % 4] == room
                assert house.doors[there][(side + 2) % 4] == doors[side]
                step = np.subtract(house.cells[there], house.cells[room])
                assert tuple(step) == STEPS[side]


def test_every_errand_of_small_houses_can_be_done():
    tasks = [TextNav(seed, rooms=4, turns=25) for seed in range(12)]
    assert {task.exact.best_return for task in tasks} == {1.0}
    assert len({task.errand for task in tasks}) > 6


def test_what_is_told_lists_the_commands_that_masks_allow():
    task = TextNav(observation="partial")
    for text, allowed in zip(task.world.texts, task.allowed):
        told = text.partition("you can ")[2].split(" / ")
        known = [command for command, ok in zip(task.world.commands, allowed) if ok]
        assert sorted(told) == sorted(known) or text == "the errand is done"


def test_an_errand_pays_in_its_room_alone():
    task = TextNav()
    name = next(n for n in task.world.names if n == "puzzle in study and you in study")
    state = begun(task, name)
    assert say(task, state, "take puzzle", "solve puzzle")[0] == [0.0, 0.0]
    assert "you carry the puzzle" in state.lines[-1].text
    while not state.over:
        values = task.action_values(state)
        said = say(task, state, task.world.commands[int(values.argmax())])
    assert said == ([1.0], "the errand is done")
    assert task.value(state) == 0.0


# Exact values


def by_search(task, worlds, text=None):
    """Best expected return of who cannot tell some states from one another, by the rules alone."""
    rng, told = np.random.default_rng(0), {}
    gained = 0.0
    for world in worlds:
        own = world.copy()
        if text is not None:
            gained += task.speak(own, text, rng).rewards["system"]
        told.setdefault(own.lines[-1].text, []).append(own)
    total = gained
    for group in told.values():
        if not group[0].over:
            commands = task.constraint(group[0], "system").words
            total += max(by_search(task, group, c) * len(group) for c in commands)
    return total / len(worlds)


@pytest.mark.parametrize("observation", ["full", "partial"])
@pytest.mark.parametrize("name", WORLDS)
def test_values_are_those_of_a_search_through_all_dialogues(name, observation):
    task = WORLDS[name](observation=observation)
    worlds = [begun(task, beginning) for beginning in task.world.names]
    assert task.exact.best_return == pytest.approx(by_search(task, worlds), abs=1e-9)
    for world in worlds[:3]:
        alike = [w for w in worlds if w.lines[-1].text == world.lines[-1].text]
        values = dict(zip(task.world.commands, task.action_values(world)))
        found = {c: by_search(task, alike, c) for c, v in values.items() if np.isfinite(v)}
        assert {c: values[c] for c in found} == pytest.approx(found, abs=1e-9)
        assert task.value(world) == pytest.approx(max(found.values()), abs=1e-9)


@pytest.mark.parametrize("task", [Maze(observation="partial"), TextNav(3, "partial", doors=1)])
def test_policies_earn_their_exact_returns(task):
    exact = {
        "random": task.exact.random_return,
        "optimal": task.exact.best_return,
        "informed": task.informed.best_return,
    }
    for policy, value in exact.items():
        (played,) = dialgym.evaluate(policy, task, 200, (0,)).by_id.values()
        returns = played.returns
        error = returns.std() / np.sqrt(returns.size)
        assert abs(returns.mean() - value) < 4 * error + 1e-9, policy


def test_who_sees_the_place_is_a_bound():
    for make in (lambda o: Maze(3, o), lambda o: TextNav(1, o)):
        full, partial = make("full"), make("partial")
        assert full.exact.best_return == pytest.approx(full.informed.best_return)
        assert full.informed.best_return == pytest.approx(partial.informed.best_return)
        assert partial.exact.best_return < partial.informed.best_return


def test_values_are_made_again_elsewhere():
    task = Maze(observation="partial")
    before = task.exact.best_return
    other = pickle.loads(pickle.dumps(task))
    assert "exact" not in other.__dict__
    assert other.exact.best_return == before


@pytest.mark.parametrize("make", [Maze, TextNav])
def test_supposed_beginnings_agree_with_what_was_told(make):
    task = make(observation="partial")
    state = begun(task, task.world.names[2])
    say(task, state, task.world.commands[3])
    places = np.flatnonzero(task.posterior(state))
    assert len(places) > 1
    assert task.suppose(state, task.truth(state)) == state
    for place in places.tolist():
        other = task.suppose(state, place)
        assert (task.truth(other), other.lines) == (place, state.lines)
        assert task.path(other)[-1] == other.place == task.tracks(state)[place]
        assert task.world.signals[other.place] == state.seen[-1]


# Policies, dialogues


@pytest.mark.parametrize("seed", range(3))
def test_the_wall_follower_finds_the_goal_of_any_maze_without_loops(seed):
    settings = {"maze": seed, "observation": "partial"}
    result = dialgym.evaluate("wall-follower", Maze(**settings), 40, (0,))
    assert result.success == 1.0


def test_skill_is_graded():
    names = ("random", "wanderer", "random-mixture", "optimal")
    means = [dialgym.evaluate(name, "TextNav-v0", 150, (0,)).mean_return for name in names]
    assert all(worse < better for worse, better in pairwise(means))


@pytest.mark.parametrize("env_id", ["Maze-Partial-v0", "TextNav-act-v0"])
def test_sets_have_dialogues_of_all_skills_from_one_beginning(env_id):
    data = dialgym.collect(env_id, "graded", 3)
    assert Counter(data["kind"]) == {"greedy": 3, "human-like": 9, "mixed": 3, "random": 3}
    assert {*dialgym.collect(env_id, "halves", 6)["kind"]} == {"good-poor", "poor-good"}
    anchors = anchors_of(Counter(f"{r:g}" for r in data.returns.tolist()), 1.0)
    assert anchors.least == data.returns.min()
    assert lmrl_score(anchors.mean, *anchors) == 50.0
    assert lmrl_score(anchors.least, *anchors) == 0.0


def test_the_host_chooses_and_loses_what_the_system_wins():
    env = dialgym.make("TextNav-act-v0", learner="user", simulator="optimal").unwrapped
    env.reset(seed=0)
    _, reward, over, _, info = env.step(7)
    assert (reward, over) == (-1.0, True)
    assert info["transcript"].startswith(f"user: {env.act_names[7]}")
    tied = dialgym.make("Maze-v0", truths=True)
    assert tied.reset(seed=0, options={"start": "start at 5 4"})[1]["truth"] == "start at 5 4"


@pytest.mark.parametrize("make", [lambda: WORLDS["maze"](observation="partial", constraint=None),
                                  lambda: WORLDS["house"](observation="partial")])  # fmt: skip
def test_variants_keep_to_their_facts(make):
    check_task(make(), episodes=3)
    check_batch(make(), steps=80)


def test_pictures_show_the_path():
    for task, shape in ((Maze(), (440, 572, 3)), (TextNav(), (264, 528, 3))):
        state = begun(task, task.world.names[0])
        before = task.picture(state)
        say(task, state, *task.world.commands[:8])  # some of them are walls
        assert before.shape == shape
        assert (task.picture(state) != before).any()


def test_pictures_of_a_partial_world_wait_for_the_end():
    for task in (Maze(observation="partial", turns=1), TextNav(observation="partial", turns=1)):
        state = begun(task, task.world.names[0])
        assert task.picture(state) is None
        say(task, state, task.world.commands[0])
        assert task.picture(state) is not None
