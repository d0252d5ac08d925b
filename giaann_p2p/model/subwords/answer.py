"""Continues a prompt, token by token, from what the profile "subwords" has learned.

The parse gives each token of the prompt its column, if a noun of the prompt names that column.
After the last delimiter, a noun still to come may claim the tokens. So such a token gets the column
of the neuron to which the own rows before it lead most often, or else no column. A chosen token's
column is found in the same way; without one, it is the column of the token before.

Once anything was learned, no answer is empty, unless a stop text ends it before its first token.
After that, an answer ends where the learned texts ended: after a neuron that nothing ever followed,
or where there is no evidence.
"""

import codecs
from collections import Counter
from collections.abc import Sequence

from giaann_p2p.errors import PromptError
from giaann_p2p.model.manner import Manner
from giaann_p2p.model.parse import CONTROL
from giaann_p2p.model.rows import Name, Neuron, Question, Steps
from giaann_p2p.model.said import Stopped
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.columns import columns, concepts, delimiters, named_until
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.ids import ANY_NAME
from giaann_p2p.model.subwords.mix import Draw, TokenChoice, mix, place_of
from giaann_p2p.model.subwords.parse import TextParser
from giaann_p2p.model.subwords.said import Rival, SubwordToken
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.subwords.texts import MAX_CHARS
from giaann_p2p.model.subwords.tokens import Token
from giaann_p2p.model.text import decoded, spaced_sentences


class TokenContinuation:
    """The continuation of a prompt: call `begin`, then `next` for each token until it is None."""

    def __init__(self, prompt: str, counted: CountedRows, manner: Manner) -> None:
        self.prompt = prompt
        self.completion = ""
        """Always empty: a token never completes the prompt's last one."""
        self.unknown: list[str] = []
        """The tokens of the prompt that were never learned."""
        self.stopped: Stopped | None = None
        """The reason why the answer has ended; None until then."""
        self._evidence, self._left = Evidence(counted), manner.max_tokens
        self._sampling = manner.sampling
        self._numbers: list[int] = []
        """The tokens of the prompt and of the answer so far."""
        self._kept = max(map(len, self._sampling.stop), default=1) - 1
        self._tail = ""
        """The end of the answer's text, as far as a stop text may begin in it."""
        self._read: list[Place] = []
        self._said = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def begin(self, tokens: Sequence[Token], /, said: Sequence[Neuron] = ()) -> Steps[None]:
        """Hear the parsed prompt, and the tokens of the answer that another peer chose before."""
        numbers = self._numbers = [token.number for token in tokens]
        sure = sure_places(tokens)
        self._read = sure[-DISTANCES:]
        for number in numbers[len(sure) :]:
            self._read.append((yield from self._placed(number)) or Place(number, None))
        distinct = list(dict.fromkeys(numbers))
        rows = yield Question(list(map(self._evidence.anywhere, distinct)), names_only=True)
        names = self._evidence.known.names
        self.unknown = [
            names[number] for number, row in zip(distinct, rows, strict=True) if row is None
        ]
        for neuron in said:
            place = self._evidence.place_of(neuron)
            if place is None:
                raise PromptError("the answer cannot be continued: one of its neurons is no token")
            self._take(place)

    def next(self) -> Steps[SubwordToken | None]:
        """Return the next token; None if there is none, and then `stopped` is the reason."""
        if self._left <= 0:
            self.stopped = "limit"
            return None
        last = self._last
        yield from self._evidence.need(needed(self._evidence, last))
        draw = Draw(self._sampling, self._said, self._numbers)
        choice = None if self._said and self._ended() else mix(self._evidence, last, draw)
        if choice is None and not self._said:
            raise PromptError("nothing was learned yet: train the model on a text first")
        if choice is None or (self._said and choice.basis is Basis.NONE) or self._stops(choice):
            self.stopped = "end"
            return None
        place = place_of(self._evidence, choice.token, last)
        if place is None:
            place = Place(choice.token, last[0].home if last else None)
        return self._token(choice, place, self._take(place))

    def prefetch(self, wanted: bool) -> None:
        """Do nothing: guesses cost only the reading of their rows."""

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon.

        These are the neurons that most often followed the tokens before the last, at the distances
        of the coming tokens; the row of the last token is not at hand yet.
        """
        evidence, found = self._evidence, dict[Neuron, None]()
        before = [evidence.at_hand(evidence.own(place)) for place in self._last[1:]]
        for ahead in range(1, DISTANCES):
            votes = Counter[tuple[int, int, int]]()
            for distance, row in zip(range(ahead + 1, DISTANCES + 1), before, strict=False):
                if row is not None:
                    votes.update(row.most_frequent(distance))
            for (token, home, feature), _ in votes.most_common(most):
                found[evidence.anywhere(token)] = None
                if home >= 0:
                    found[evidence.neuron(home, feature)] = None
        return list(found)

    def close(self) -> None:
        """Give the memory back; the answer cannot be continued."""
        self._evidence.forget()

    @property
    def nbytes(self) -> int:
        """The approximate size in memory, in bytes."""
        return self._evidence.nbytes

    @property
    def _last(self) -> list[Place]:
        """The tokens that a choice depends on, the nearest first."""
        return self._read[-DISTANCES:][::-1]

    def _placed(self, number: int) -> Steps[Place | None]:
        """Return the token's neuron to which the tokens read so far lead; None without one."""
        yield from self._evidence.need(needed(self._evidence, self._last))
        return place_of(self._evidence, number, self._last)

    def _ended(self) -> bool:
        """Return whether the neuron read last occurred, and nothing ever followed it."""
        own = self._evidence.followers(self._evidence.own(self._read[-1]))
        return own is not None and own.row.count > 0 and not own.counts(1).total

    def _take(self, place: Place) -> str:
        """Append a token to the answer, and return the text that it adds."""
        text = self._decoded(place.token)
        tail = self._tail + text
        self._tail = tail[max(len(tail) - self._kept, 0) :]
        self._read.append(place)
        self._left, self._said = self._left - 1, self._said + 1
        self._numbers.append(place.token)
        return text

    def _stops(self, choice: TokenChoice) -> bool:
        """Return whether the answer with this choice would contain a stop text."""
        if not self._sampling.stop:
            return False
        state = self._decoder.getstate()
        text = self._tail + self._decoded(choice.token)
        self._decoder.setstate(state)
        return any(stop in text for stop in self._sampling.stop)

    def _decoded(self, token: int) -> str:
        """Decode the answer's next token; the decoder keeps an incomplete character's bytes."""
        text = self._decoder.decode(self._evidence.known.bytes[token])
        return text.lstrip() if not self._said and self.prompt[-1:].isspace() else text

    def _token(self, choice: TokenChoice, place: Place, text: str) -> SubwordToken:
        known = self._evidence.known
        name = Name(
            ANY_NAME if place.home is None else known.names[place.home],
            None if place.prime else known.names[place.token],
        )
        return SubwordToken(
            text,
            known.names[choice.token],
            name,
            choice.basis,
            choice.log_odds,
            choice.candidates,
            choice.probability,
            tuple(Rival(known.names[token], share) for token, share in choice.rivals),
        )


def prompt_tokens(prompt: str, parser: TextParser, spec: ModelSpec) -> list[Token]:
    """Return the tokens of as many of a prompt's last sentences as a sequence may have."""
    pieces = decoded([prompt.replace("\0", "").encode("utf-8", "surrogatepass")], "the prompt")
    found = list(spaced_sentences(pieces, MAX_CHARS))[-of_subwords(spec).sentences :]
    text = "".join(gap + sentence.text for gap, sentence in found)
    text = CONTROL.sub(" ", text).strip()
    if not text:
        raise PromptError("the prompt is empty: give it some words to go on with")
    return parser.tokens(text)


def sure_places(tokens: Sequence[Token]) -> list[Place]:
    """Return the first tokens with their columns, up to those that a later noun may still claim."""
    nouns = concepts(tokens)
    if not nouns:
        return []
    kinds = delimiters(tokens, nouns)
    found = []
    for at, column in enumerate(columns(nouns, kinds)[: named_until(nouns, kinds)]):
        noun = nouns[column]
        found.append(Place(tokens[at].number, tokens[noun].number, at == noun))
    return found
