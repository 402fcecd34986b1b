"""Writes that precede a bind: claims, locks and annotations of nodes."""
