"""The hyperNode controller: counts the nodes of HyperNodes, and creates HyperNodes from discovered topologies."""
