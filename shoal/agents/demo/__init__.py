"""`shoal demo`: the whole way of the data on one machine, with the truth beside it.

folder      the folder of a demo, made anew: configuration, key, lock
purchases   the input, and its true running mean, which only the demo knows
processes   worker and auditors: started, watched, stopped, never left behind
streaming   events in, releases out
view        what a terminal shows meanwhile
outcome     what is said at the end: truth against estimate, what activated
picture     the same, drawn
show        all of it in order
"""
