"""`shoal demo`: the whole way of the data on one machine, with the truth beside it.

shop        real purchases: means over all of them, released day by day
places      simulated buses: mean speeds by place and hour, on a map
scene       what each of the two has of its own

folder      the folder of a demo, made anew: configuration, key, lock
processes   worker and auditors: started, watched, stopped, never left behind
streaming   events in, releases out
view        where all this is shown meanwhile: a terminal, or lines
show        all of it in order
"""
