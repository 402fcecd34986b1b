"""The sharding controller: divides the nodes among schedulers, with one NodeShard per scheduler."""
