"""How fast and how well search answers, in Segue and in its peers."""
