"""Doors to other libraries: out by `dialgym.Chat`, in by tasks of others' environments.

| module | for | extra |
|---|---|---|
| `openenv` | OpenEnv 0.10: a server of sessions, by `openenv.app` | ``openenv`` |
| `verifiers` | verifiers 0.4, prime-rl: a package of `verifiers.classes` | ``verifiers`` |
| `skyrl` | SkyRL-Gym 0.4: `skyrl.register` and `skyrl.rows` | ``skyrl`` |
| `trl` | TRL 1.16: `trl.prompts` and `trl.rollout_func` for its ``GRPOTrainer`` | ``trl`` |
| `trl_tools` | the same: `trl_tools.environment`, the verb of a game as a tool | ``trl`` |
| `tinker` | Tinker cookbook 0.5.8: `tinker.groups` for its training | ``tinker`` |
| `verl` | verl 0.9: `verl.DialogueLoop`, an agent loop, and `verl.rows` | none |
| `nemo_gym` | NeMo-Gym 0.4: `nemo_gym.server` and `nemo_gym.rows` | none |

Environments of others are played as tasks (`foreign`): ``gymnasium:ID`` (`gymnasium`),
``textarena:ID`` (`textarena`), ``openenv:URL`` (`openenv_client`) and ``verifiers:PACKAGE``
(`verifiers_client`).

Rewards, ends, seeds and texts are those of a chat, turn by turn. Nothing of another library is
imported before it is needed.
"""
