"""What one run says in tables, and how two runs differ.

changes  How single gangs fared differently, and in what words
rows     The rows of tables, and how long the gangs of a row waited
unknown  What a simulation cannot know, in words
"""
