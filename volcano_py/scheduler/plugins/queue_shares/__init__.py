"""What the plugins that share the cluster among queues have in common: proportion, capacity, overcommit."""
