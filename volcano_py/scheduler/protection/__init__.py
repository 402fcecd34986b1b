"""Containment of faults: cycles that do not end, plugins that fail, and a model that is built again."""
