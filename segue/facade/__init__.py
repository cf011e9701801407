"""The Python API: two thin classes over the use cases. Rules live below."""
