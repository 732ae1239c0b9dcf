"""Blocks of one unit's samples: sample 1 is level 0, samples 2**(l-1) + 1 .. 2**l are level l.

A block closes with the sample that fills it; a unit with M samples has closed floor(log2 M) + 1 blocks that hold at
least half of its samples. The tail after the last closed block is withheld.

Source       George, Ramesh, Singh and Tyagi (2024), section 3
"""

NONE = -1


def closes(samples: int) -> int:
    """The level of the block that a unit's sample of this number (from 1) closes, or NONE.

    >>> [closes(j) for j in range(1, 10)]
    [0, 1, -1, 2, -1, -1, -1, 3, -1]
    """
    return samples.bit_length() - 1 if samples & (samples - 1) == 0 else NONE


def weight(level: int) -> int:
    """w_l: samples in a block of the level.

    >>> [weight(level) for level in range(5)]
    [1, 1, 2, 4, 8]
    """
    return 1 << max(0, level - 1)


def top_level(max_contributions: int) -> int:
    """L = ceil(log2 m), the paper's number of levels beyond level 0.

    >>> [top_level(m) for m in (1, 2, 3, 4, 5, 1024)]
    [0, 1, 2, 2, 3, 10]
    """
    return (max_contributions - 1).bit_length()
