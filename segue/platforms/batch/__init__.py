"""Prompts in a file, asked one after another."""
