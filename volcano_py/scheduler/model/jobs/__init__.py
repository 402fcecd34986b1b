"""Jobs and their tasks, PodGroups of Volcano and Kubernetes, and classes of equal pods."""
