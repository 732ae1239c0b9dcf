"""Trips that nobody made: buses in a city, for demos and benchmarks.

city        where: centre, size, resolution of its cells
routes      the lines that buses drive, as tables of places in equal steps of time
traffic     how fast they drive in each cell and hour
fleet       how often each bus reports, and how it differs from the others
events      all of it in order of time; the same seed gives the same bytes
forms       how it is written: JSON lines, or a feed of GTFS-realtime
truth       the exact mean of each cell and slot, which no worker knows

Its randomness is numpy's: nothing here is private, and nothing here is used where something is.
"""
