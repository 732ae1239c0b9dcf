"""A metric as seven typed parts, frozen dataclasses without I/O.

    source   Source          the records that are read, and when a record counts
    of       Of              the statistic, with the values that it takes
    per      One, Keys       one series, or one per key
    at       At              when releases are made
    hides    ValuesOf,       the neighbouring relation, the unit of privacy and
             AddRemove       the limits on what one unit contributes
    by       Algorithm       the algorithm, with the keys that it alone takes
    budget   Budget          epsilon and delta, and the share of each purpose

`shoal.models.config.adapter` makes the parts of a metric once, from its keys. Code matches on their classes. A class
has only the fields that its metrics use. None is a value of its own, and never stands for a default.
"""
