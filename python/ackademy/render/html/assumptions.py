"""What the numbers of a report rest on, as a list of who says what."""

from __future__ import annotations

from collections.abc import Iterable

from ackademy.render.html.markup import Markup, element, join
from ackademy.studies.experiment_files import Assumption


def listed(assumptions: Iterable[Assumption]) -> Markup:
    """Each with its origin as the term and as the class, in the order given."""
    entries = [
        join((element("dt", entry.origin, class_=entry.origin), element("dd", entry.text)))
        for entry in assumptions
    ]
    return element("dl", join(entries), class_="assumptions")
