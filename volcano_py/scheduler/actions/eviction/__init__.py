"""Eviction: one pipeline for preempt, reclaim, gangpreempt and gangreclaim.

starving           which jobs may evict
back_off           which of them wait, because their last evictions had no effect
sufficient_victims the candidates on a node that plugins permit
free_capacity      which node to free for a task, and which of the candidates go
dry_run            the same node by node on trial, for topology-aware preemption
bundles, gangs     which pods go for a whole gang, in one domain of the network
commit_evictions   all of a job's plan or nothing; gangs fall as a whole or not at all
nominations        capacity that was freed for a pod is kept for it
"""
