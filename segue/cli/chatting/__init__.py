"""The chat in a terminal: what is typed, what is shown, and nothing of how the answers come about.

prompt_toolkit and rich's Markdown take long to load; they are imported by the files that need them, and those files
only when somebody is at a terminal.
"""
