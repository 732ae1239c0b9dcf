"""What crosses a boundary: configuration, events, wire records, SQL tables, errors."""
