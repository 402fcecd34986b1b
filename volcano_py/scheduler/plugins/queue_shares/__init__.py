"""Common code of the plugins that share the cluster among queues: proportion, capacity, overcommit."""
