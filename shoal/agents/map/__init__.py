"""Maps of releases: a metric whose groups are H3 cells, as a picture and as a page.

releases    what was released where, out of JSON lines
colors      scales and colors of the picture
picture     map.png: one slot, value beside noise
drawing     both into a folder; map.html, with all slots, is a page of shoal.agents.dashboard

Both say first what is protected and what is not: whoever looks at a map of people should know it.
"""
