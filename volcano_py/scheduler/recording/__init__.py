"""What is kept of a cluster beside the cycles: which fields may be captured, and the files that hold them.

Snapshots (`volcano_py.simulate.snapshot`) and recordings of cycles share both.
"""
