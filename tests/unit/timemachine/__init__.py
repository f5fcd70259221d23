"""The time machine: plays of small worlds, and what two of them say side by side."""
