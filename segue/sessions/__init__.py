"""The use cases. Each is a function whose first argument is an open transaction: hold, decide, write."""
