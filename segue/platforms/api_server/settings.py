"""The API server has no settings of its own: the gateway's door is its door, and tokens are its secrets."""
