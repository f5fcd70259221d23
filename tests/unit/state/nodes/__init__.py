"""What is known of nodes."""
