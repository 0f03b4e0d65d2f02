"""Feudal policies: a master chooses what kind of act to take, sub-policies which one."""
