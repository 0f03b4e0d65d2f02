"""A fingerprint of rules that no environment has today."""

from dialgym.experiments.rules import Fingerprint

OTHER = Fingerprint(7, "0" * 16, "1" * 16)
