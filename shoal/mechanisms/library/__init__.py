"""The mechanisms for programs without Kafka: what `shoal.mechanisms` exports, and nothing of it computed twice.

Public parameters are frozen and need no key: they say what a stream costs (`loss`) and how exact it will be. `open`
gives them a key, and the stream that it returns is the very statistic, counter or sampler that a worker drives.
"""
