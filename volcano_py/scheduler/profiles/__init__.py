"""Pod-at-a-time scheduling: profiles of plugins that see one pod after another. Kubernetes: the scheduling framework.

Pure, like the rest of the decision core: time is passed in, and what has to happen in the cluster comes out as data.
"""
