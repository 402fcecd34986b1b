"""Shadow mode: decide beside a live scheduler without writing, and compare. Not in Volcano.

`observed` notes in watch events which jobs the live scheduler starts; `trial` decides over the cluster as it was before
such a start; `comparison` counts. These three are pure: times are arguments. `shadow` connects them with the
scheduler's process; `report` and `metrics` are what comes out.
"""
