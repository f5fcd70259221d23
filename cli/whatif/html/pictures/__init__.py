"""Pictures in SVG. They know values and positions, and not what these are about.

The one idea: positions are percentages of the width, so that one picture fits a phone, a screen and
paper, and its texts and marks keep their size.

scales     from values to positions, and where the marks of an axis are
dumbbells  a value before and after, on the axis of a column
bars       gains and losses, on the axis of a column
lines      values over time
points     points on two axes, such as waits against numbers of nodes
"""
