"""Platforms: one folder each, with the same files. None knows another."""
