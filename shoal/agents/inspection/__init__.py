"""What `shoal check` looks at, section by section: would a worker start, and what would be guaranteed to whom?"""
