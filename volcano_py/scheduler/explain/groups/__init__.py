"""Trees of native groups, explained."""
