"""What a token costs in energy under a latency promise: measure it, publish it, let others repeat it."""

__version__ = "0.1.0"
