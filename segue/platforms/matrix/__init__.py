"""People speak to your agent on Matrix."""
