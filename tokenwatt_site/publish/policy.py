"""The content policy of every page: nothing from elsewhere, nothing inline."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'"
)
"""Stands in a meta tag, first in head, and in the header where we serve the site ourselves."""
