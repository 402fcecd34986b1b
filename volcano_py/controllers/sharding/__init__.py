"""The sharding controller: divides the nodes among schedulers, one NodeShard for each."""
