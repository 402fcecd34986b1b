"""Plugins of volumes."""
