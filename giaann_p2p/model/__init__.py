"""The GIAANN model: text to sequences, sequences to deltas, rows to predictions.

Pure: no network, no terminal, no clock. The modules in the order of the data flow:

    text        bytes          -> sentences
    parse       sentences      -> sequences   (english: spaCy's pipeline; columns: the rules)
    learn       sequences      -> delta       (deltas add up: learning is a sum)
    rows        delta          -> rows        (the interface between learning and prediction)
    board       rows           -> wirings     (rows as tensor indices over a prompt's slots)
    activation  wirings        -> candidates  (the state of a prompt, on a torch device)
    listen      prompt         -> heard       (maps the words of a prompt to neurons)
    generate    heard + rows   -> tokens      (one timing or several; beam search)
    render      tokens         -> text

That is the profile `words`. The profile `subwords` has a package of its own, and `profile` is the
interface that both share.
"""
