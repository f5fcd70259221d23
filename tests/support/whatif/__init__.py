"""What-if results as reports get them.

capacity     an answer to a capacity question
comparisons  a comparison of any size, with waits, use, gains and losses that go together
pages        reads an HTML file: its elements, texts and links
tuning       what a search for a better Queues document found
"""
