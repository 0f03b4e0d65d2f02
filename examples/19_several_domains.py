"""A user with goals in two domains: each has a policy of its own, which learned there alone.

`19_several_domains.py 1000 500` prints the figures of the documentation: dialogues of training in
each domain, and of the test.
"""

import sys

import dialgym
from agents import Committee, train
from agents.acts.gp.topics import PolicyManager
from dialgym.experiments import Scripted, evaluate_domains

dialogues, episodes = (int(text) for text in (sys.argv[1:] or ("300", "100")))
IDS = [f"dialgym/{name}Restaurants-Env3-act-v0" for name in ("Cam", "SF")]
env = dialgym.multi_domain_env(IDS, render_mode="ansi")
first, second, topics = env.possible_agents

handcrafted = PolicyManager({name: Scripted(env, name) for name in (first, second)})
env.reset(seed=2)
while not any(env.terminations.values()):
    agent = env.agent_selection
    topic = None if agent == topics else agent
    domain, act = handcrafted.act(topic, env.observe(agent), env.action_masks())
    env.step(act if domain else env.task.acts[topics].names.index(act))
print(env.render(), env.infos[topics]["metrics"], "\n")

gp = {
    name: train(id, "gp-sarsa", dialogues=dialogues, progress_bar=False, n_envs=4)
    for name, id in zip((first, second), IDS)
}
pools = [dialgym.sb3_vec_env(id, n_envs=4, seed=0) for id in IDS]
member = Committee("GPPolicy", pools[0], act_kernel={"kernel": "kind", "similarity": 0.2}, seed=0)
committee = {first: member.learn(7 * dialogues)}
committee[second] = member.transferred(pools[1]).learn(7 * dialogues)  # knows what member knows

managers = {
    "handcrafted": handcrafted,
    "GP-SARSA": PolicyManager(gp),
    "Committee": PolicyManager(committee),
}
for name, manager in managers.items():
    print(name)
    for domain, played in evaluate_domains(manager, env, episodes).items():
        low, high = played.interval
        score = f"{played.mean_return:.1f} ({low:.1f} to {high:.1f})"
        print(f"  {domain}: success {played.success:.1%}, return {score}")
