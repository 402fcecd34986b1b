"""Advance reservations: nodes that a Reservation keeps for some jobs, or for nobody, for a time. Not in Volcano."""
