"""The dispatcher: carries out plans. Its own process, because a thread beside a pure-Python cycle managed 250
binds a second and a process 9,400.

    handle.py    the decider's side: starts the process, sends plans, hears results
    messages.py  what crosses the pipe
    frames.py    how it crosses
    machine.py   which write may begin now, what became of it: pure, no I/O, no clock
    waiting.py   the machine's queues: lanes, order per object, delays
    writes.py    one operation as API calls
    process.py   the process: pipe, Lease, machine and writes put together
"""
