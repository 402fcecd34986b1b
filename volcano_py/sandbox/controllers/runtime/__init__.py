"""Common parts of controllers: informers over the store, work queues, ownership, pod control.

Kubernetes: client-go's informers and work queues, and pkg/controller.
"""
