"""Advance reservations: nodes that a Reservation keeps for some jobs, or for no one, for a time. Not in Volcano."""
