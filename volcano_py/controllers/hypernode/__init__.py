"""The hyperNode controller: counts the nodes of HyperNodes, and makes HyperNodes of what it discovers."""
