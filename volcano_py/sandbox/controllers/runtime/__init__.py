"""Common parts of controllers: informers over the store, work queues, ownership, pod control."""
