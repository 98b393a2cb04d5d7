"""Streams whose truth is known, and the verdict on what a client makes of them."""
