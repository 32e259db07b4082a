"""What a chart looks like in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ackademy.files import PAGE_ENDINGS


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A chart, which a notebook shows, and the page with the chart and all numbers."""

    page: str
    """HTML, complete in itself"""
    svg: str
    """the chart alone"""
    about: str
    """what is drawn, in one line"""

    def save(self, path: Path | str) -> None:
        """Write the page to a file `.html`, or the chart to a file `.svg`.

        Raises:
            AckademyError: if the file has another ending, or it cannot be written; nothing is then
                written.
        """
        from ackademy.files import check_ending, write

        found = check_ending(Path(path), (*PAGE_ENDINGS, ".svg"))
        write(found, self.svg if found.suffix.lower() == ".svg" else self.page)

    def __repr__(self) -> str:
        return f"Figure of {self.about}: .save('NAME.html') or .save('NAME.svg')"

    def _repr_html_(self) -> str:
        return self.svg
