"""People speak to your agent on Telegram, through a bot of yours."""
