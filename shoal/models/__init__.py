"""The data that crosses a boundary: configuration, events, wire records, SQL tables, errors."""
