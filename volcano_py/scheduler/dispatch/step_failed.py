"""The error of a pre-bind step. kube-scheduler: a Status of PreBind that is not a success."""

from __future__ import annotations


class StepFailed(Exception):
    """A step cannot be executed: the message contains the object and the reason."""
