"""What a token costs in energy under a latency promise: measured, published, repeatable."""

__version__ = "0.1.0"
