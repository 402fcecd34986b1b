"""The dispatcher: writes plans in its own process. Measured: a thread beside a pure-Python cycle wrote 250 binds per
second, a process 9,400. Volcano: the goroutines of the scheduler cache.

    handle.py      the decider's side: starts the process, sends plans, receives results
    messages.py    the messages on the pipe
    frames.py      the encoding of messages
    machine.py     which write may begin, and its result: pure, no I/O, no clock
    barriers.py    binds that wait for each other's pre-bind steps
    waiting.py     the machine's queues: lanes, order per object, delays
    writes.py      an operation as API calls
    answers.py     the fields that are read from responses of the API server
    versions.py    the resourceVersions that guard statuses
    leadership.py  whether it may write: the election, and whether the Lease is still held
    parent.py      termination of a decider that sends no heartbeat
    process.py     the process: pipe, Lease, machine and writes
"""
