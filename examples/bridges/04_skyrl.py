"""A dialogue as an environment of SkyRL-Gym: needs the extra `skyrl`."""

from dialgym.bridges import skyrl
from dialgym.optional import check_installed

check_installed("skyrl", "this example", "skyrl_gym")
import skyrl_gym

(row,) = skyrl.rows("Wordle-20-v0", 1, seed=3)  # of the training data, for their parquet
env = skyrl_gym.make(skyrl.register(), extras=row)
messages, _ = env.init(row["prompt"])
for message in messages:
    print(f"{message['role']}: {message['content']}")
for word in ("quiet", "crisp"):
    result = env.step(word)
    heard = result["observations"][0]["content"] if result["observations"] else "(over)"
    print(f"assistant: {word}\nuser: {heard}  ({result['reward']:g})")
print(env.get_metrics())
