"""The dispatcher: carries out plans in its own process. A thread beside a pure-Python cycle wrote 250 binds a second, a
process writes 9,400.

    handle.py      the decider's side: starts the process, sends plans, receives results
    messages.py    the messages on the pipe
    frames.py      their encoding
    machine.py     which write may begin now, and its result: pure, no I/O, no clock
    waiting.py     the machine's queues: lanes, order per object, delays
    writes.py      one operation as API calls
    answers.py     the fields that are read from the server's answers
    versions.py    the resourceVersions that guard statuses
    leadership.py  whether it may write: the election, and whether the Lease still holds
    parent.py      ends a silent decider
    process.py     the process: pipe, Lease, machine and writes put together
"""
