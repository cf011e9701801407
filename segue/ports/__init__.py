"""What the use cases need from the outside world, as small protocols."""
