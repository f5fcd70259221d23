"""What all pages consist of.

page    the frame: style, security policy, title, contents
tables  tables with a caption, a head and a part that unfolds
units   numbers, durations, moments and changes in words
markup  tags, and text that is escaped
"""
