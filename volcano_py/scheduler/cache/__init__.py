"""The cache: the objects of the API server as a model, with assumed plans. Volcano: pkg/scheduler/cache.

cache.py       Cache: informers, the model, assumed plans and their results
results.py     which results confirm an operation, and which undo it
resync.py      reads of pods whose operation has an unknown outcome
quarantine.py  invalid objects
kinds.py       the kinds that are watched, and their feature gates
filters.py     the pods, PodGroups and nodes that this scheduler is responsible for
ring.py        the hash ring of several schedulers
reservations.py  the Reservations, while the plugin advance-reservation is configured
shards.py      the nodes of this scheduler when NodeShards divide them
queues.py      the queues root and default
dump.py        dump of the cache to a file
"""
