"""The search for a node: views of a class of pods over all nodes, runs of equal tasks, and why nodes are rejected."""
