"""Databases of GIAANNpy, the public reference: reads what it writes to disk, and writes one.

A database is a folder: four dictionaries at the top, and one folder for each column, with a tensor
of its neurons and one of the connections of each of its neurons. It may come from a stranger, so
reading it runs no code in it, follows no link, and builds nothing larger than the files themselves.

    folder        names       -> the files of each column
    files         a file      -> its bytes
    plain_pickle  bytes       -> a flat dictionary
    tensors       bytes       -> the entries of a sparse tensor, and back
    strengths     fractions   -> whole units, and back
    vocabulary    the dictionaries that the reference has for our tokens
    extras        the additional file in a database that we wrote
    column        a column's files -> rows
    rows          rows        -> deltas
    anywhere      own rows    -> the rows that ignore columns
    reading       a folder    -> a `Database`
    learning      a `Database` -> a brain
    writing       knowledge   -> a folder
"""
