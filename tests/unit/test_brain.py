"""The brain as Python sees it: learning once, stopping and going on, answering."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from giaann_p2p import (
    Beam,
    Brain,
    ModelSpec,
    PromptError,
    StoreError,
    TextError,
    Trained,
    UsageError,
    Variant,
)
from giaann_p2p.solo import corpus

BEES = "Bees make honey from the nectar that they collect from flowers in the summer."
WAR = "Many poets fought in the Spanish Civil War that ended in the spring of that year."
WIKI = Path(__file__).parent.parent / "data" / "wiki.txt"


@pytest.fixture(scope="module")
def wiki_digest() -> str:
    brain = Brain(ModelSpec())
    brain.train(WIKI)
    return brain.digest()


def test_a_text_is_learned_once_whatever_its_name(tmp_path: Path) -> None:
    file = tmp_path / "bees.txt"
    file.write_text(BEES)
    brain = Brain(ModelSpec())
    first, second = brain.train(BEES, file)
    assert (first.sequences, first.known) == (1, False)
    assert (second.sequences, second.known) == (0, True)


def test_the_order_of_texts_makes_no_difference() -> None:
    one, other = Brain(ModelSpec()), Brain(ModelSpec())
    one.train(BEES, WAR)
    other.train(WAR)
    other.train(BEES)
    assert one.digest() == other.digest()
    assert [(job.name, job.chunks, job.complete) for job in one.info().texts] == [
        ("text", 1, True),
        ("text", 1, True),
    ]


def test_stopped_after_any_chunk_it_goes_on_to_the_same_end(
    tmp_path: Path, wiki_digest: str
) -> None:
    for stop_after in (1, 2, 3):
        where = tmp_path / str(stop_after)
        with Brain.open(where, ModelSpec()) as brain:
            stops = _true_at(stop_after)
            (report,) = brain.train(WIKI, should_stop=lambda stops=stops: next(stops))  # type: ignore[misc]
        assert (report.chunks, report.interrupted) == (stop_after, True)
        with Brain.open(where, ModelSpec()) as brain:
            (report,) = brain.train(WIKI)
            assert (report.chunks_known, report.chunks) == (stop_after, 3 - stop_after)
            assert brain.digest() == wiki_digest
            (again,) = brain.train(WIKI)
            assert again.known


def _true_at(count: int) -> Iterator[bool]:
    yield from [False] * (count - 1)
    while True:
        yield True


def test_what_was_learned_is_on_the_disk_chunk_by_chunk(tmp_path: Path, wiki_digest: str) -> None:
    crashed = tmp_path / "crashed"

    def crash(report: Trained, _: float) -> None:
        if report.chunks == 2:
            shutil.copytree(tmp_path / "brain", crashed)

    with Brain.open(tmp_path / "brain", ModelSpec()) as brain:
        brain.train(WIKI, progress=crash)
    with Brain.open(crashed, ModelSpec()) as brain:
        assert [job.chunks for job in brain.info().texts] == [2]
        (report,) = brain.train(WIKI)
        assert (report.chunks_known, report.chunks) == (2, 1)
        assert brain.digest() == wiki_digest


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_whatever_breaks_off_learning_each_chunk_is_learned_once(
    tmp_path: Path, error: type[BaseException], wiki_digest: str
) -> None:
    def fail(report: Trained, _: float) -> None:
        if report.chunks == 2:
            raise error

    with Brain.open(tmp_path, ModelSpec()) as brain:
        with pytest.raises(error):
            brain.train(WIKI, progress=fail)
        brain.train(WIKI)
        assert brain.digest() == wiki_digest
    with Brain.open(tmp_path, readonly=True) as brain:
        assert brain.digest() == wiki_digest


def test_a_text_that_only_some_shards_have_is_learned_for_the_others(
    tmp_path: Path, wiki_digest: str
) -> None:
    source = Brain(ModelSpec())
    source.train(WIKI)
    with Brain.open(tmp_path, ModelSpec()) as brain:
        for shard in (0, 3):  # an interrupted pull leaves a brain like this
            brain._store.adopt(source._store.content(shard))
        (report,) = brain.train(WIKI)
        assert (report.chunks_known, report.chunks) == (0, 3)
        assert brain.digest() == wiki_digest
        assert [(job.chunks, job.complete) for job in brain.info().texts] == [(3, True)]
        (again,) = brain.train(WIKI)
        assert again.known


def test_chunks_that_only_some_shards_have_do_not_count_as_learned(tmp_path: Path) -> None:
    source = Brain(ModelSpec())
    source.train(WIKI)
    with Brain.open(tmp_path, ModelSpec()) as brain:
        stops = _true_at(1)
        brain.train(WIKI, should_stop=lambda: next(stops))
        brain._store.adopt(source._store.content(0))
        (report,) = brain.train(WIKI)
        assert (report.chunks_known, report.chunks) == (1, 2)
        assert brain.digest() == source.digest()


def test_an_error_before_the_first_chunk_leaves_no_job(tmp_path: Path) -> None:
    file = tmp_path / "wide.txt"
    file.write_text(BEES, encoding="utf-16")
    with Brain.open(tmp_path / "brain", ModelSpec()) as brain:
        with pytest.raises(TextError, match="UTF-16"):
            brain.train(file)
        assert list(brain.info().texts) == []


@pytest.mark.slow
def test_a_text_that_changes_while_it_is_read_is_not_booked_as_what_it_was(tmp_path: Path) -> None:
    file, brain = tmp_path / "bees.txt", Brain(ModelSpec())
    file.write_text((BEES + " ") * 3000)

    def change(report: Trained, _: float) -> None:
        if report.chunks == 1:
            file.write_text(WAR * 3000)

    with pytest.raises(TextError, match=r"bees\.txt changed while it was read, about byte"):
        brain.train(file, progress=change)
    (job,) = brain.info().texts
    assert not job.complete
    file.write_text((BEES + " ") * 3000)
    brain.train(file)
    whole = Brain(ModelSpec())
    whole.train((BEES + " ") * 3000)
    assert brain.digest() == whole.digest()


def test_a_files_name_is_not_learned_as_a_text(tmp_path: Path) -> None:
    file = tmp_path / "bees.txt"
    file.write_text(BEES)
    with pytest.raises(TextError, match="give Path"):
        Brain(ModelSpec()).train(str(file))


@pytest.mark.parametrize("text", ["日本語の文" * 40, "x/" * 100 + "é" * 30, "\0", "a" * 255])
def test_a_word_that_no_file_can_be_named_is_a_text(text: str) -> None:
    with Brain(ModelSpec()) as brain:
        (report,) = brain.train(text)
        assert (report.sentences, report.sequences) == (1, 0)


def test_a_name_that_may_not_be_looked_up_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, **_: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("os.stat", refuse)
    assert not corpus._names_a_file("/root/x")


def test_a_closed_brain_learns_no_more(tmp_path: Path) -> None:
    with Brain.open(tmp_path, ModelSpec()) as brain:
        brain.train(BEES)
    with pytest.raises(UsageError, match="closed"):
        brain.train(WAR)
    assert brain.generate("Bees make honey from the nectar").text


def test_a_grown_log_gives_way_to_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("giaann_p2p.store.journal._LEAST_LOG", 0)
    with Brain.open(tmp_path, ModelSpec()) as brain:
        brain.train(BEES)
    assert [file.name for file in sorted(tmp_path.iterdir())][1:] == [
        "snapshot-00000002",
        "store.json",
    ]


def test_only_one_may_learn_but_all_may_read(tmp_path: Path) -> None:
    with Brain.open(tmp_path, ModelSpec()) as brain:
        brain.train(BEES)
        with pytest.raises(StoreError, match="is being written to"):
            Brain.open(tmp_path, ModelSpec())
        with Brain.open(tmp_path, readonly=True) as reader:
            assert reader.info().digest == brain.info().digest


def test_the_lock_is_let_go_when_opening_fails(tmp_path: Path) -> None:
    Brain.open(tmp_path, ModelSpec()).close()
    for _ in range(2):
        with pytest.raises(UsageError, match="another model: seed_tokens: 8 and 12"):
            Brain.open(tmp_path, ModelSpec(seed_tokens=8))
    Brain.open(tmp_path, ModelSpec()).close()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        Brain.open(tmp_path / "file" / "brain", ModelSpec())


@pytest.mark.slow
def test_several_workers_learn_the_same(wiki_digest: str) -> None:
    brain = Brain(ModelSpec())
    brain.train(WIKI, workers=2)
    assert brain.digest() == wiki_digest


def test_epochs_multiply_what_is_learned() -> None:
    once, twice = Brain(ModelSpec()), Brain(ModelSpec())
    once.train(BEES)
    reports = twice.train(BEES, epochs=2)
    assert [report.sequences for report in reports] == [1, 1]
    assert (twice.knowledge.strength == 2 * once.knowledge.strength).all()
    assert (twice.knowledge.count == 2 * once.knowledge.count).all()


def test_progress_tells_how_much_was_read() -> None:
    seen: list[tuple[int, float]] = []
    Brain(ModelSpec()).train(
        WIKI, progress=lambda report, share: seen.append((report.sentences, share))
    )
    assert [sentences for sentences, _ in seen] == [64, 128, 141]
    assert seen[-1][1] == 1.0


def test_an_answer_streams_the_tokens_that_generate_collects() -> None:
    brain = Brain(ModelSpec())
    brain.train(BEES)
    answer = brain.stream("Bees make honey from the nectar", max_tokens=3)
    words = [token.word for token in answer]
    whole = brain.generate("Bees make honey from the nectar", max_tokens=3)
    assert words == [token.word for token in whole.tokens] == ["that", "they", "collect"]
    assert (answer.stopped, whole.stopped) == ("limit", "limit")
    assert whole.text == " that they collect"
    assert list(answer) == []


def test_an_answer_completes_the_word_that_the_prompt_cuts() -> None:
    brain = Brain(ModelSpec())
    brain.train(WAR)
    answer = brain.generate("Many poets fought in the Spanish", max_tokens=3)
    assert answer.completion == " civil war"
    assert answer.text == " civil war that ended in"


@pytest.mark.parametrize(
    "variant", [Variant(graded_strengths=True), Variant(graded_activations=True)]
)
def test_variants_recall_a_text_this_small(variant: Variant) -> None:
    brain = Brain(ModelSpec())
    brain.train(BEES)
    answer = brain.generate("Bees make honey from the nectar", variant=variant, beam=Beam())
    assert answer.text == " that they collect from flower in the summer."


@pytest.mark.parametrize("prompt", ["Bees make honey", "of the and"])
def test_nothing_learned_at_all_is_an_error(prompt: str) -> None:
    with pytest.raises(PromptError, match="nothing was learned yet"):
        Brain(ModelSpec()).generate(prompt)


@pytest.mark.parametrize("prompt", ["of the and", "Zebras eat grass", BEES, "!"])
def test_any_prompt_is_answered(prompt: str) -> None:
    brain = Brain(ModelSpec())
    brain.train(BEES)
    answer = brain.generate(prompt)
    assert answer.text.strip()
    assert answer.tokens[0].timing in ("own rows", "any column", "no evidence")


@pytest.mark.parametrize("prompt", [None, 3, b"Bees"])
def test_what_is_no_text_is_a_type_error(prompt: str) -> None:
    for ask in (Brain(ModelSpec()).generate, Brain(ModelSpec()).stream):
        with pytest.raises(TypeError, match="a prompt is a str, not "):
            ask(prompt)


def test_wrong_arguments_are_the_callers_fault(tmp_path: Path) -> None:
    brain = Brain(ModelSpec())
    for wrong in (
        lambda: brain.generate("Bees", timing="soon"),
        lambda: brain.generate("Bees", max_tokens=0),
        lambda: brain.evaluate(BEES, seed_tokens=0),
        lambda: brain.evaluate(BEES, feed="mine"),
        lambda: brain.recall(BEES, words=0),
        lambda: brain.train(BEES, epochs=0),
        lambda: brain.train(BEES, workers=-1),
    ):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(TextError, match=r"none\.txt"):
        brain.train(tmp_path / "none.txt")


def test_a_brain_to_read_does_not_learn(tmp_path: Path) -> None:
    with Brain.open(tmp_path, ModelSpec()) as brain:
        brain.train(BEES)
    with Brain.open(tmp_path, readonly=True) as reader, pytest.raises(UsageError, match="reading"):
        reader.train(WAR)


def test_the_repr_tells_where_and_how_much(tmp_path: Path) -> None:
    brain = Brain(ModelSpec(seed_tokens=4))
    assert repr(brain) == "<Brain in memory: 0 neurons, 0 connections>"
    brain.train(BEES)
    assert repr(brain).startswith("<Brain in memory: 15 neurons, 1")


def test_connections_are_told_by_name() -> None:
    brain = Brain(ModelSpec())
    brain.train(BEES)
    found = {
        (c.source_concept, c.source_feature, c.target_concept, c.target_feature, c.segment): c
        for c in brain.connections()
    }
    adjacent = found["bee", None, "bee", "make", 10]
    assert (adjacent.branch, adjacent.strength, adjacent.units) == (0, 5.0, 5 * 65536)
    assert len(found) == brain.info().connections


def test_what_is_neither_text_nor_file_is_the_callers_fault() -> None:
    for wrong in (5, None, b"Bees make honey."):
        with pytest.raises(UsageError, match="a text must be a str"):
            Brain(ModelSpec()).train(wrong)  # type: ignore[arg-type]


def test_a_brain_that_is_not_to_be_made_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no brain in"):
        Brain.open(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
