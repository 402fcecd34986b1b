"""The cache: what the API server shows, as a model, and the plans assumed on it. Volcano: pkg/scheduler/cache.

cache.py       Cache: informers, the model, assumed plans and their results
results.py     which results confirm an operation, and which undo it
resync.py      reads of pods whose operation has an unknown outcome
quarantine.py  objects that cannot be used
kinds.py       the kinds that are watched, and their feature gates
filters.py     the pods, PodGroups and nodes of this scheduler
ring.py        the hash ring of several schedulers
shards.py      the nodes of this scheduler when NodeShards divide them
queues.py      the queues root and default
dump.py        the cache as a file
"""
