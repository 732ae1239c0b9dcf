"""Releases in lines, as they are published.

words       a release or an activation, for a person
lines       which of them are printed, and when
"""
