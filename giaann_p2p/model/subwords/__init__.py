"""The model profile "subwords": tokens of a fixed tokeniser, three sentences a sequence.

It learns connections of the same form as the profile "words", so store and swarm know neither. The
modules in the order of the data flow:

    tokeniser    text        -> tokens      (o200k, identified by its ranks)
    texts        bytes       -> texts       (three sentences each)
    tags         words       -> parts of speech
    tokens       text, words -> tokens with their parts of speech
    columns      tokens      -> columns, delimiters
    sequence     columns     -> sequences   (many in one structure)
    learn        sequences   -> delta
    evidence     tokens      -> rows        (those that a choice depends on)
    followers    rows        -> counts
    gain         counts      -> logarithms  (made once per row)
    score        logarithms  -> scores
    mix          scores      -> a choice    (the default read-out)
    lif          rows        -> a choice    (the reference's read-out)
"""
