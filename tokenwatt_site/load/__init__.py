"""The client: plays a schedule of requests over HTTP and records what comes back, and when."""
