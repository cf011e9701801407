"""Segue beside raw SQLite and its peers, as ratios within one run."""
