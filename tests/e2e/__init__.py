"""End to end: the real programs of Kubernetes around the real services, as processes."""
