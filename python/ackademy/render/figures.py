"""Figures of results: what a notebook shows, and files as SVG, PNG, PDF or HTML."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ackademy.errors import AckademyError
from ackademy.files import PAGE_ENDINGS, check_ending, file_name, write
from ackademy.installation import add_extra
from ackademy.render import report as render
from ackademy.render.html import svg
from ackademy.render.html.charts import Panel, panels
from ackademy.render.html.markup import Markup
from ackademy.render.html.svg import SIZES, Width
from ackademy.render.report import Report, Section

Format: TypeAlias = Literal["svg", "png", "pdf"]
FORMATS: tuple[Format, ...] = get_args(Format)
WIDTHS: tuple[Width, ...] = get_args(Width)
PNG_PPI = 300.0
PAGE = "#set page(width: auto, height: auto, margin: 0pt)\n#set document(date: none)\n"
"""a page as large as what is on it; the same figure gives the same bytes"""


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """Charts, which a notebook shows, and the page with them and all numbers."""

    report: Report
    panels: Sequence[Panel]
    about: str
    """what is drawn, in one line"""
    width: Width = "screen"

    @property
    def page(self) -> str:
        """HTML, complete in itself."""
        return render.page(self.report)

    @property
    def svg(self) -> str:
        """The charts alone."""
        return svg.figure(self.panels, self.width)

    def save(self, path: Path | str, *, width: Width | None = None) -> None:
        """Write the charts to a file `.svg`, `.png` or `.pdf`, or the page to a file `.html`.

        Args:
            path: the file.
            width: `screen`, or `column` or `page` of a paper; by default that of `plot`.

        Raises:
            AckademyError: if the file has another ending, PNG or PDF lack the extra `figures`, or
                the file cannot be written; nothing is then written.
        """
        endings = (*PAGE_ENDINGS, *(f".{own}" for own in FORMATS))
        found = check_ending(Path(path), endings)
        shown = self.svg if width is None else svg.figure(self.panels, check_width(width))
        suffix = found.suffix.lower()
        form = next((own for own in FORMATS if suffix == f".{own}"), None)
        write(found, self.page if form is None else drawn(shown, form))

    def __repr__(self) -> str:
        return f"Figure of {self.about}: .save('NAME.svg'), or .png, .pdf, .html"

    def _repr_html_(self) -> str:
        return self.svg


def of_section(report: Report, anchor: str, about: str, width: Width = "screen") -> Figure:
    """The charts of one section of a report as one figure.

    Raises:
        AckademyError: if there is no such width.
    """
    found = [one for own in report.sections if own.anchor == anchor for one in _panels(own)]
    return Figure(report, found, about, check_width(width))


def check_width(width: Width) -> Width:
    """The width.

    Raises:
        AckademyError: if there is no such width.
    """
    if width not in SIZES:
        raise AckademyError(f"width = {width!r}: allowed: {', '.join(WIDTHS)}")
    return width


def write_all(
    report: Report, folder: Path, formats: Sequence[Format], width: Width = "screen"
) -> list[Path]:
    """Write every chart of a report to a file of its own, as `SECTION-TITLE.svg`.

    Raises:
        AckademyError: if PNG or PDF lack the extra `figures`, or a file cannot be written.
    """
    written: list[Path] = []
    for section in report.sections:
        for panel in _panels(section):
            stem = _stem(f"{section.anchor}-{panel.title}")
            number, own = 2, stem
            while folder / f"{own}.{formats[0]}" in written:
                own, number = f"{stem}-{number}", number + 1
            shown = svg.figure([panel], width)
            for form in formats:
                written.append(folder / f"{own}.{form}")
                write(written[-1], drawn(shown, form))
    return written


def formats_of(text: str) -> list[Format]:
    """Formats separated by commas.

    Raises:
        AckademyError: if one is unknown, or needs an extra that is missing.
    """
    named = [one.strip().lower() for one in text.split(",") if one.strip()]
    found = [own for own in FORMATS if own in named]
    if not found or set(named) - set(FORMATS):
        raise AckademyError(f"--figure-format {text}: allowed: {', '.join(FORMATS)}")
    if found != ["svg"]:
        _typst()
    return found


def drawn(drawing: str, form: Format) -> str | bytes:
    """An SVG as the content of a file.

    Raises:
        AckademyError: if PNG or PDF lack the extra `figures`.
    """
    if form == "svg":
        return drawing
    compile_page, fonts = _typst()
    source = f'{PAGE}#image(bytes(sys.inputs.svg), format: "svg")'.encode()
    inputs = {"sys_inputs": {"svg": drawing}, "font_paths": fonts, "ignore_system_fonts": True}
    return (
        compile_page(source, format="png", ppi=PNG_PPI, **inputs)
        if form == "png"
        else compile_page(source, format="pdf", pdf_tags=False, **inputs)
    )


def _typst() -> tuple[Callable[..., bytes], list[str]]:
    """What draws PNG and PDF, and the folders of its fonts, which are those of no machine."""
    try:
        import font_roboto
        import typst
    except ImportError:
        how = add_extra("figures")
        raise AckademyError(f"PNG and PDF need the extra `figures`: {how}; SVG does not") from None
    return typst.compile, [str(Path(font_roboto.__file__).parent / "files")]


def _panels(section: Section) -> list[Panel]:
    items = render.of_medium(section, "html")
    return [one for item in items if isinstance(item, Markup) for one in panels(item)]


def _stem(name: str) -> str:
    """A name as that of a file: words of letters and digits with hyphens between them."""
    words = re.findall(r"[^\W_]+(?:[.=][^\W_]+)*", name.casefold())
    return file_name("-".join(words)[:80].rstrip("-") or "figure")
