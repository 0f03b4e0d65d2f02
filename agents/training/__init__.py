"""Training by configuration: one call or one command from an id to a saved agent."""
