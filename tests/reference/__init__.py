"""A plain scheduler: straight loops over Volcano's rules, to compare the fast one with.

Nothing here is quick, cached or clever, and nothing is shared with the scheduler of the package: the rules are
read a second time. A cycle builds everything anew from manifests, decides, and hands back what it decided.

    resource, request, task, node        the numbers: amounts, what pods ask for, who is where
    job, sub_job, hyper_nodes            who belongs together, and which nodes are near each other
    cluster                              manifests → one picture
    conf, votes, session, statement      a session and the ways plugins are asked
    placing                              which nodes fit, which is best
    actions/, plugins/, kube/            one file a rule
    cycles                               several cycles, and the batch form
"""
