"""Looking after a home: examining and mending it, keeping copies of it, tidying up."""
