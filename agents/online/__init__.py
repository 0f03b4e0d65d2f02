"""On-policy algorithms over whole dialogues: SequencePPO, NLPO and GRPO."""
