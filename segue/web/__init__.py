"""The gateway as programs see it: one door on this machine, behind which everything is asked for with a token."""
