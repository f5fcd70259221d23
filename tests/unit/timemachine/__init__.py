"""The past played again."""
