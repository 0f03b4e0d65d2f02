"""How fast the learners are, each beside a reference: `python -m benchmarks.training`."""
