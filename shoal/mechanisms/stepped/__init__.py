"""What statistics that are released at every step share: sums of samples that may forget, one or several per group."""
