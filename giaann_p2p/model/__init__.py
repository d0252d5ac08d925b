"""The GIAANN model: text to sequences, sequences to deltas, rows to predictions.

Pure: no network, no terminal, no clock. The modules in the order in which data flows:

    text        bytes          -> sentences
    parse       sentences      -> sequences   (english: spaCy's pipeline; columns: the rules)
    learn       sequences      -> delta       (the sum type that all learning is made of)
    rows        delta          -> rows        (all that prediction sees of what was learned)
    board       rows           -> wirings     (rows laid out over a prompt's own slots)
    activation  wirings        -> candidates  (the state of a prompt, on a torch device)
    listen      prompt         -> heard       (which neurons the words of a prompt are)
    generate    heard + rows   -> tokens      (one timing or several; looking ahead)
    render      tokens         -> text
"""
