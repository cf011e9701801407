"""Other programs speak to your agent by HTTP."""
