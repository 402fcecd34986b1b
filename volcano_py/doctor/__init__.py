"""`volcano-py doctor`: what is wrong with a machine or an installation, and how to correct it. Not in Volcano.

`facts` reads, `machine`, `installation` and `objects` decide on what was read, without further requests.
"""
