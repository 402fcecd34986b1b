"""The registered resources, their strategies, and the server's state. Kubernetes: the generic registry."""
