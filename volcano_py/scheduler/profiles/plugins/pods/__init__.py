"""Plugins that compare a pod with other pods."""
