"""Policy documents and what they mean."""
