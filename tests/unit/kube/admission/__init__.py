"""What a new pod asks of rules and quotas."""
