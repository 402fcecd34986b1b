"""What controllers share: informers over the store, work queues, ownership, pod control."""
