"""The page that shows what was released: live from Kafka and the audit log, or as one file.

book        releases by metric and group, as columns that are thinned, and activations
facts       what a configuration and a ledger say about them
cells       H3 cells as polygons
page        the page as one text, with a policy that lets nothing in from elsewhere
ending      what goes on until the page ends
snapshot    all that the page is told

The parts of the page itself are in web/: one HTML, one style sheet and scripts, which are put together as they stand.
Whoever shows the page needs no key and no right on events: it knows what was published, and nothing else.
"""
