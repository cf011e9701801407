"""The rules of Segue: pure functions of their arguments. No clock, no database, no configuration, no logging."""
