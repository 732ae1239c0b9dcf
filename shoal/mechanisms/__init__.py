"""The mathematics: private statistics as pure objects, without I/O, clock or transport.

Each module opens with what it promises; docs/proofs/ proves it. The long name is the argument, the letter serves in
formulas.

=================== ========== =========================================================================
name                letter     meaning
=================== ========== =========================================================================
epsilon             eps        privacy loss, a Fraction; a share of it is rounded down
delta               delta      privacy alone, never an accuracy
failure             beta       probability that an accuracy bound does not hold
users               n          units expected; tunes accuracy, never the guarantee
max_contributions   m          samples of one unit (and group) that count
groups              G          groups one unit may be in; each runs at epsilon / G
grid, steps         -          public grid: a value is an integer 0 .. steps
level               l          of a block: level 0 is sample 1, level l samples 2**(l-1) + 1 .. 2**l
weight              w_l        samples in a block of level l: 1, 1, 2, 4, 8, ...
top_level           L          ceil(log2 m)
capacity            N          elements a counter expects
height              h          bit length of N: the most nodes that hold an element
levels              h          of a tree: nodes that hold an element, whatever the capacity
arity               k          children of a node
scale               b          of Laplace noise: P(k) proportional to exp(-abs(k) / b); rounded up
l1_sensitivity      -          the most that one unit changes all noised numbers together
l2_sensitivity      -          the same as a root of summed squares, for Gaussian noise
rho                 rho        privacy loss under zCDP; what epsilon and delta allow, rounded down
sigma2              sigma^2    of Gaussian noise: P(k) proportional to exp(-k^2 / (2 sigma2)); exact
width               -          grid steps that one unit can move in a counter
variance            -          in squared grid steps
epoch               -          number of a counter's tree; a full tree is followed by a new one
arrays              k          array means that vote for a prior
prior               mu~        first estimate of the mean, the centre of clipping
sigma               -          of subgaussian samples; no noise scale
half_width          D_l        grid steps from the centre to the end of a clip interval
step                t          of a decayed sum: all that came in one interval of time, as one integer
length              W          of a window, in steps
alpha               alpha      what is left of a step's weight one step later
exponent            c          of a polynomial decay: a step of age a weighs (a + 1)**-c
strides, ratios     s_i        steps between the hats of a level, and how many times the next finer ones that is
=================== ========== =========================================================================
"""
