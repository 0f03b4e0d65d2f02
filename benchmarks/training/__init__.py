"""Speed of the learners, each beside a reference: `python -m benchmarks.training`."""
