"""What-if: sources, flags and output."""
