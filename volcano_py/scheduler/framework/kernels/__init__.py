"""The arithmetic of the search over columns, in numpy and compiled, chosen in one place."""
