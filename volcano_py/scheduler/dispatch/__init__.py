"""The dispatcher: carries out plans. Its own process, because a thread beside a pure-Python cycle managed 250
binds a second and a process 9,400.

    handle.py      the decider's side: starts the process, sends plans, receives results
    messages.py    what crosses the pipe
    frames.py      how it crosses
    machine.py     which write may begin now, what became of it: pure, no I/O, no clock
    waiting.py     the machine's queues: lanes, order per object, delays
    writes.py      one operation as API calls
    answers.py     what is read of the objects that the server answers with
    versions.py    the resourceVersions that guard statuses
    leadership.py  whether it may write: the election, and whether the Lease still holds
    parent.py      how a silent decider is ended
    process.py     the process: pipe, Lease, machine and writes put together
"""
