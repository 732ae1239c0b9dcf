"""All code that touches Kafka, SQL, files and the terminal."""
