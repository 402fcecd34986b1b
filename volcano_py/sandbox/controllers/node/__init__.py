"""Controllers of nodes: health, taints, evictions by taints."""
