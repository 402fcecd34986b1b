"""Volumes: which nodes can attach and bind them."""
