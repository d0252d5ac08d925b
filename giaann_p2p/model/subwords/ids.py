"""The reserved concepts of the profile "subwords".

Concepts and features are named by tokens, and a token's name is hashed like any word (see
`model.ids`). The names here have spaces between words, which no token has: no text can name them.
"""

from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Neuron

ANY_NAME = "any column"
DETERMINISTIC_NAME = "deterministic delimiters"
PROBABILISTIC_NAME = "probabilistic delimiters"

ANY = word_id(ANY_NAME)
"""The concept of rows that ignore columns: neuron (ANY, t) stands for token t in any column."""
DETERMINISTIC = word_id(DETERMINISTIC_NAME)
"""Neuron (DETERMINISTIC, t) counts how often token t was a deterministic delimiter."""
PROBABILISTIC = word_id(PROBABILISTIC_NAME)
"""The same for probabilistic delimiters."""

EVERYTHING = Neuron(ANY, PRIME)
"""The neuron that stands for every token: it occurs with each, and its row leads to each as often
as the token occurs."""

RESERVED = {ANY_NAME: ANY, DETERMINISTIC_NAME: DETERMINISTIC, PROBABILISTIC_NAME: PROBABILISTIC}
"""The reserved concepts by name."""
