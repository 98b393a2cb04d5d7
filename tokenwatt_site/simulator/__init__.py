"""The embedded engine: the step model in real time behind HTTP, with a meter at GET /power."""
