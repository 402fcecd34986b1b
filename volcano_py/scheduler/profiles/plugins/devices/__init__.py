"""Plugins of devices."""
