"""Eviction: one pipeline for preempt, reclaim, gangpreempt and gangreclaim.

starving           which jobs may evict
back_off           which of them wait, because their last evictions had no effect
sufficient_victims the candidates on a node that plugins permit
free_capacity      which node to free for a task, and which of the candidates go
dry_run            the same node by node on trial, for topology-aware preemption
bundles, gangs     which pods go for a whole gang, in one domain of the network
units              what is evicted at once: a whole job, or a pod above a minimum
entitled           reclaim for gangs that their queue is entitled to: which members, in which domain
entitled_attempt   the search for one choice of members; cheapest_units tries all sets of units
short_resources    for which resources a gang does not fit
unit_plans         the placement of a gang after the eviction of units, without needless ones
reclaiming         what reclaim may evict, for allocate and reclaim
commit_evictions   all of a job's plan or nothing; gangs fall as a whole or not at all
nominations        capacity that was freed for a pod is kept for it
"""
