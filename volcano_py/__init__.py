"""volcano_py: a batch scheduler for Kubernetes that understands Volcano's Jobs, PodGroups and Queues."""

__version__ = "0.2.0"
