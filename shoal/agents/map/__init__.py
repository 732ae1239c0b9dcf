"""Maps of releases: a metric whose groups are H3 cells, as a picture and as a page.

releases    what was released where, out of JSON lines
geometry    cells as polygons on a plane
colors      scales and colors, alike in picture and page
picture     map.png: one slot, value beside noise
page        map.html: all slots, on its own, without anything from elsewhere

Both say first what is protected and what is not: whoever looks at a map of people should know it.
"""

FIRST = "What a person did in a place is protected. That they were there, and when, is not."
FIRST_OF_PRESENCE = "Whether a person was in a place is protected, and what they did there."
ABSENT, ABSENT_OF_PRESENCE = "nothing in this slot", "not shown in this slot"  # of a cell that another one has
NOISE = "\N{PLUS-MINUS SIGN} of 95 % of the noise"
