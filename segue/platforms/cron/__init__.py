"""Jobs that run at their moments."""
