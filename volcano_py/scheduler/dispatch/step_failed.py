"""The error of a pre-bind step."""

from __future__ import annotations


class StepFailed(Exception):
    """A step cannot be carried out: the message names the object and what is in the way."""
