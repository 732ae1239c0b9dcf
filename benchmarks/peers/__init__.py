"""Other systems doing bound's work, each in an environment of its own (`benchmarks/speed/environments.py`).

The job is the same everywhere: read the events of a topic, and keep for each user how many of the first CAP samples
came, and the sum of their values, each clipped to the range. The state is as durable as the system makes it.
"""
