"""Hollow kubelets, and the sandbox's controllers, for another API server: they use only its API.

Both use a store in their own process. Here that store is a copy (`mirror`) of the foreign server's objects; `writes`
sends the kubelets' changes, `verbs` those of controllers, and `attachment` connects and detaches.
"""
