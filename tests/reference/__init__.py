"""A reference scheduler: plain loops over Volcano's rules, with which the scheduler of the package is compared.

It has no caches and no optimizations, and shares nothing with the scheduler of the package: the rules are implemented
a second time. A cycle builds everything from manifests, decides, and returns its decisions.

    resource, request, task, node        amounts, requests of pods, pods on nodes
    job, sub_job, hyper_nodes            gangs, and the network topology
    cluster                              manifests → one snapshot
    conf, votes, session, statement      a session, and how plugins are called
    placing                              which nodes fit, which is best
    actions/, plugins/, kube/            one file per rule
    cpus                                 the CPUs and NUMA nodes of a node
    cycles                               several cycles, and the batch form
    messages                             fit errors and conditions
    strategies and others                the clusters that are compared: strategies, full_clusters, network_clusters,
                                         plugin_fields, usage_fields, numa_fields
"""
