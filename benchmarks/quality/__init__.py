"""How well search finds what was said: planted facts, questions about them, and conversations that stand in the way."""
