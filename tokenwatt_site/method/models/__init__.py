"""What a model is made of, from its config.json: matrices, caches, precisions."""
