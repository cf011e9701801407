"""Models of providers. Others import `model` alone: the rest takes seconds to load, and is loaded when it is needed."""
