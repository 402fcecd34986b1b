"""Hollow kubelets, and the sandbox's controllers, at an API server that is not ours: over its API only.

Both were written for a store in their own process. Here that store is a copy (`mirror`) of the foreign server's
objects; `writes` sends what kubelets change, `verbs` what controllers change, and `attachment` connects and detaches.
"""
