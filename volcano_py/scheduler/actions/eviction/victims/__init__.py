"""The choice of victims: units that are evicted together, and the fewest that suffice."""
