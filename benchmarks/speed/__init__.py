"""How fast shoal is, beside a raw loop and other systems, in one run on one broker (`make bench`)."""
