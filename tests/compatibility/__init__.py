"""What an earlier commit has stored is read by this one; README.md says what is stored, and how."""
