"""What-if results as reports get them.

comparisons  a comparison of any size, with waits, use, gains and losses that go together
pages        reads an HTML file: its elements, texts and links
"""
