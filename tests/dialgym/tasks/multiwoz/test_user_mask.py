"""What a user may choose in its act view, beyond what its goal has."""

import dialgym


def test_nobody_says_goodbye_before_the_system_has_spoken():
    env = dialgym.aec_env("dialgym/MultiWOZ-act-v0")
    for seed in range(5):
        env.reset(seed=seed)
        bye = [name.lower().split("-")[:2] for name in env.task.acts["user"].names].index(
            ["general", "bye"]
        )
        assert env.agent_selection == "user"
        assert not env.action_masks()[bye]
        action = env.action_masks().astype("int8")
        env.step(action)
        assert env.agent_selection == "system"
        env.step(env.action_masks().astype("int8") * 0)
        assert env.action_masks()[bye]
