"""Telegram as a bot sees it, on this machine: a Bot API server for the tests.

`client.py` is the side of the tests. Everything else runs in a process of its own, on the Python of the counterparts,
and knows nothing of Segue. What a client sends is read with the models of aiogram, which others have made from the
description of the Bot API; what such a reading objects to, the server refuses and keeps as a complaint.

Each bot has a world of its own: a token, a port, chats, people, messages, and troubles.
"""
