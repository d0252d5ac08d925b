"""Write the file of words that every peer knows anew: python -m tests.vocabulary."""

from importlib import resources
from pathlib import Path

import numpy as np

from giaann_p2p.model.subwords.tokeniser import tokeniser

FILE = Path(str(resources.files("giaann_p2p.store.codec") / "data" / "vocabulary.bin"))


def vocabulary() -> bytes:
    """Return the file's content: see `giaann_p2p.store.codec.vocabulary`."""
    known = tokeniser()
    order = np.argsort(known.ids)
    texts = [known.names[token].encode() for token in order.tolist()]
    lengths = bytes(map(len, texts))
    return b"".join([known.ids[order].astype("<u8").tobytes(), lengths, *texts])


if __name__ == "__main__":
    FILE.write_bytes(vocabulary())
