"""The code that `giaann train` and `giaann solo train` share: learning several texts in turn.

If a text cannot be learned, the others still are. After Ctrl-C the command reports what was
learned, and that the same command continues from there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import typer

from giaann_p2p.cli.present import NOTHING_TO_LEARN
from giaann_p2p.errors import TextError
from giaann_p2p.exit_codes import FAILED, INTERRUPTED
from giaann_p2p.terminal import complain

if TYPE_CHECKING:
    from giaann_p2p import Trained

Report = TypeVar("Report", bound="Trained")


class Learning(Generic[Report]):
    """A list of texts that are learned one after another, and the reports on them."""

    def __init__(
        self,
        named: Iterable[Path],
        files_of: Callable[[Path], Iterable[Path]],
        tell: Callable[[Report], None],
    ) -> None:
        """List the files of all names with `files_of`; `tell` prints a report.

        Names without a readable file are reported; TextError is raised if no name has one.
        """
        self._tell = tell
        self._reports: list[Report] = []
        self._current: Report | None = None
        self._failed = self._interrupted = False
        self.files: list[Path] = []
        self._find(named, files_of)

    def __iter__(self) -> Iterator[Path]:
        """Iterate over the files, until the user interrupts the command."""
        for file in self.files:
            if self._interrupted:
                return
            yield file

    def show(self, report: Report) -> None:
        """Remember the latest report on the text that is being learned."""
        self._current = report

    @contextmanager
    def attempt(self) -> Iterator[list[Report]]:
        """Enclose the learning of one text; the caller adds its reports to the yielded list."""
        reports: list[Report] = []
        try:
            yield reports
        except TextError as error:
            complain(str(error))
            self._failed = True
        self._current = None
        self._add(reports)

    def cut_short(self) -> None:
        """Report the unfinished text as interrupted, after Ctrl-C ended its learning at once."""
        self._interrupted = True
        if self._current is not None:
            self._current.interrupted = True
            self._add([self._current])

    def end(self, complete: Callable[[Report], bool] = lambda report: True) -> None:
        """Report how the command ended; raise typer.Exit unless every text is `complete`."""
        learned = sum(report.sequences for report in self._reports)
        if self._interrupted:
            unit = self._reports[-1].unit if self._reports else "sentences"
            what = (
                f"{learned:,} {unit.removesuffix('s') if learned == 1 else unit} learned, and kept"
            )
            complain(f"interrupted; {what}: the same command continues from there")
            raise typer.Exit(INTERRUPTED)
        if not any(report.sequences or report.chunks_known for report in self._reports):
            complain(f"nothing was learned: {NOTHING_TO_LEARN}")
            raise typer.Exit(FAILED)
        if self._failed or not all(map(complete, self._reports)):
            raise typer.Exit(FAILED)

    def _add(self, reports: list[Report]) -> None:
        for report in reports:
            self._tell(report)
            self._interrupted |= report.interrupted
        self._reports += reports

    def _find(self, named: Iterable[Path], files_of: Callable[[Path], Iterable[Path]]) -> None:
        """List the files of all names; TextError if there are none."""
        faults = []
        for one in named:
            try:
                self.files += files_of(one)
            except TextError as error:
                faults.append(error)
        if faults and not self.files:
            for fault in faults[:-1]:
                complain(str(fault))
            raise faults[-1]
        for fault in faults:
            complain(f"{fault}; continuing with the others")
            self._failed = True
