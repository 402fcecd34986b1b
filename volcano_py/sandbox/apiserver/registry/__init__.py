"""The resources that the server has, their strategies, and its state. Kubernetes: the generic registry."""
