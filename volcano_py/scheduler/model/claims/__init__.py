"""Volumes and devices: what pods claim, and what is left."""
