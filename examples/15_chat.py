"""Talk to an agent, let two of them talk, and let a frozen one be the user of an environment.

The agent is a clone of the built-in everyday dialogues, after less training than it deserves. A
saved one, or a language model by its name, is talked to in the same way, and at the terminal:
`dialgym chat --model runs/mine`.
"""

import torch

import dialgym
from agents import BC, ChatAgent
from agents.decoding.sampling import generator_of

torch.set_num_threads(1)  # the fastest on batches as small as these
ID = "dialgym/DailyDialog-Conversation-v0"

talk = dialgym.collect(ID, "reference", episodes=400, seed=0)
env = dialgym.sb3_vec_env(ID, n_envs=1)
model = BC("GPTPolicy", env, talk, learning_rate=5e-3, batch_size=16, seed=0).learn(150)

print("one reply:", model.chat("Hello! How are you?", deterministic=True), "\n")

agent = ChatAgent.load(model, temperature=0.5)
generator = generator_of(0)
said = ["What are you doing on Saturday?"]
while len(said) < 6:
    said.append(agent.chat(said[-1], said[:-1], seed=generator))
for number, text in enumerate(said):
    print(f"{'AB'[number % 2]}: {text}")

result = dialgym.evaluate("reference", ID, 20, env_kwargs={"simulator": agent})
print(f"\nwho has the clone as its user: mean return {result.mean_return:.2f}")
