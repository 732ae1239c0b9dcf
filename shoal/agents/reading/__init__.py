"""Reads what was published, wherever it is: a file, a topic, the audit log. No key is needed, and nothing is written.

fields      what a record is, and which numbers are in it
record      a release or an activation, typed
digits      numbers with as many digits as their noise leaves meaning in
sources     files, topics and audit logs; source, topics, live and log are what they are made of
selection   which releases are wanted
releases    `shoal.read`, and the releases that it returns
chart       what a notebook shows; series has what is drawn
table       a row for each number; frames and csv_text write it
export      `shoal export`: from any source into a file, one release after the other
"""
