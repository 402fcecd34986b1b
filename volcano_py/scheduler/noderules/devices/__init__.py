"""Devices of ResourceClaims: which nodes can allocate them."""
