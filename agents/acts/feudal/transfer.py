"""Learners that know the structure of their domain, and act in another one by what they learned."""

from __future__ import annotations

from typing import Any, Self

from stable_baselines3.common.type_aliases import GymEnv

from agents.acts.base import copied_to
from agents.acts.belief_structure import structure_of
from agents.acts.feudal.hierarchy import check_transfer
from dialgym.tasks import BeliefStructure

OF_THE_DOMAIN = ("_last_obs", "_last_original_obs", "_last_episode_starts", "_masks", "_heads")
"""Attributes of a learner that belong to the env that it was in."""


class StructuredPolicy:
    """Base, left of a policy, that can start from the weights of another domain's policy.

    Args:
        args, kwargs: as of that policy.
        structure: of the domain's beliefs and acts; the algorithm gives it.
    """

    def __init__(self, *args: Any, structure: BeliefStructure, **kwargs: Any) -> None:
        self.structure = structure
        super().__init__(*args, **kwargs)

    def start_from(self, other: Any) -> None:
        """Copy the weights of a policy of this kind, of any domain.

        Raises:
            ValueError: it is of another kind, or its domain has other features or kinds of acts.
        """
        if not isinstance(other, type(self)):
            raise ValueError(
                f"cannot start from a {type(other).__name__}: expected a feudal policy, "
                f"{type(self).__name__}"
            )
        check_transfer(other.structure, self.structure)
        self.load_state_dict(other.state_dict())  # type: ignore[attr-defined]

    def _get_constructor_parameters(self) -> dict[str, Any]:
        arguments = super()._get_constructor_parameters()  # type: ignore[misc]
        return {**arguments, "structure": self.structure}


class Structured:
    """Joined with a learner on its left: gives its policy the `structure` of the env."""

    policy_kwargs: dict[str, Any]
    env: Any

    @property
    def structure(self) -> BeliefStructure:
        """Structure of the domain that the policy acts in; it is saved with the model."""
        found: BeliefStructure = self.policy_kwargs["structure"]
        return found

    def _setup_model(self) -> None:
        if "structure" not in self.policy_kwargs:
            found = structure_of(self.env, type(self).__name__)
            self.policy_kwargs = {**self.policy_kwargs, "structure": found}
        super()._setup_model()  # type: ignore[misc]

    def transferred(self, env: GymEnv, **changes: Any) -> Self:
        """A copy that acts in the domain of another env, and can learn on there.

        It has the weights and the state of the optimizer, and an empty memory. Its memory of what
        it has learned from stays where it is.

        Args:
            env: of the other domain.
            changes: of attributes, such as `seed`, or `exploration_initial_eps` of DQN.

        Raises:
            ValueError: the env does not say what its beliefs and acts are about, or they have other
                features or other kinds of acts.
        """
        wrapped = self._wrap_env(env, verbose=0)  # type: ignore[attr-defined]
        structure = structure_of(wrapped, type(self).__name__)
        check_transfer(self.structure, structure)
        kwargs = {**self.policy_kwargs, "structure": structure}
        made: Self = copied_to(self, wrapped, OF_THE_DOMAIN, {"policy_kwargs": kwargs, **changes})
        return made
