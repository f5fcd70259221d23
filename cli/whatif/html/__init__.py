"""What-if results as one HTML file: pictures and tables that need no network and no script. Pure.

The same input gives the same bytes. Names of users, gangs and VCs may hold anything: text is
escaped unless it is `Markup`, and only `frame.markup` makes `Markup`.

report    `format_html`: the report on a comparison
capacity  `format_capacity_html`: how many nodes bring a wait below a goal
sections  the parts of the report
pictures  pictures in SVG
frame     the page around them, tables, tags, and numbers in words
"""
