"""Plugins of gangs."""
