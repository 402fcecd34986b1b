"""The way in: what the API server shows becomes the model. Volcano: the scheduler cache's informers and
handlers.

    kinds.py       what is watched, and when
    filters.py     which pods, PodGroups and nodes are ours
    ring.py        the hash ring of several schedulers
    feed.py        informers into the model; the first complete picture
    quarantine.py  objects that cannot be used
    echoes.py      what became of plans: failures, withdrawn ones, unknown ones
    shards.py      which nodes are ours when NodeShards divide them
    queues.py      the queues root and default
    dump.py        the picture as a file
"""
