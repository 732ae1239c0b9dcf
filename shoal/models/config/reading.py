"""Readings: how a metric version reads its events.

Which records count decides releases, so it belongs to the parameters of a metric version: a new version gets the
newest reading, a registered one keeps the one it was registered with, for ever. Numbers, texts and booleans of the
usual kind are read alike by both.

    1    versions registered before there were readings; their parameters do not name it
    2    * NaN, Infinity and -Infinity are a bad value of their field alone; to reading 1 the record is no JSON
         * a byte order mark before a record is no part of it
         * whole numbers that are written as floats are ids: 12.0 is the user, or group, 12
         * epoch times also in micro- and nanoseconds, and as text; digits alone are never a calendar date
         * coordinates may be numbers as text, as a CSV has them
"""

FIRST = 1
NEWEST = 2
