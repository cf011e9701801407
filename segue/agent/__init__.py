"""The agent: turns, the loop of models and tools, providers, and the one that needs no model."""
