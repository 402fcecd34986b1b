"""Kubernetes' rules for names, label keys and values. Each check returns the problem, or an empty string."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_PORT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)


def dns_label(name: str) -> str:
    """RFC 1123 label: lower case letters, digits and `-`, at most 63."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not _LABEL.fullmatch(name):
        return "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
    return ""


def service_name(name: str) -> str:
    """RFC 1035 label, the name of a Service: a DNS label that begins with a letter."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not _SERVICE.fullmatch(name):
        return "must consist of lower case letters, digits or '-', begin with a letter and end with a letter or digit"
    return ""


def dns_subdomain(name: str) -> str:
    """RFC 1123 subdomain: labels joined by dots, at most 253 characters."""
    if len(name) > 253:
        return "must be no more than 253 characters"
    if not _SUBDOMAIN.fullmatch(name):
        return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
    return ""


def qualified_name(name: str) -> str:
    """A label key or the like: an optional `prefix/`, then at most 63 letters, digits, `-`, `_`, `.`."""
    prefix, slash, last = name.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if problem := dns_subdomain(prefix):
            return f"prefix part {problem}"
    if not last:
        return "name part must be non-empty"
    if len(last) > 63:
        return "name part must be no more than 63 bytes"
    if not _QUALIFIED.fullmatch(last):
        return "name part must consist of alphanumeric characters, '-', '_' or '.'"
    return ""


def label_value(value: str) -> str:
    """At most 63 letters, digits, `-`, `_`, `.`; may be empty."""
    if len(value) > 63:
        return "must be no more than 63 bytes"
    if value and not _QUALIFIED.fullmatch(value):
        return "a valid label must be empty or consist of alphanumeric characters, '-', '_' or '.'"
    return ""


def port_name(name: str) -> str:
    """An IANA service name: at most 15 lower case letters, digits and single `-`, with a letter."""
    if len(name) > 15:
        return "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(name) or "--" in name or not any(char.isalpha() for char in name):
        return "must contain at least one letter, and otherwise lower case letters, digits or '-'"
    return ""
