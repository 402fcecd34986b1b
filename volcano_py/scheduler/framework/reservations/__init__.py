"""Reservations: nodes that are held for gangs that wait, from the expected ends of what runs. Not in Volcano."""
