"""The cache audit: a running scheduler compares its cache with the API server, and corrects differences. Volcano: none.

drift     what differs, as data and as one sentence
listed    one page of a list against the store of an informer
modelled  the store of an informer against the model
audit     the rounds: when each part runs, which nodes are held meanwhile, and the corrections
"""
