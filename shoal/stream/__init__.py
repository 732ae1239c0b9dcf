"""The rules of the stream as pure state machines: no Kafka, no wall clock, no SQL."""
