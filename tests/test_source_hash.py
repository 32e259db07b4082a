"""What is kept on disk stays valid when a module moves or is described in other words."""

from pathlib import Path

import pytest

from ackademy import source_hash

CODE = '''"""About."""

from ackademy.metrics import loss_ratio


def share(lost, sent):
    """Lost of sent."""
    return loss_ratio(lost, sent)  # both whole numbers
'''
MOVED = '''"""About it, in other words."""

from ackademy.stats.formulas import loss_ratio

def share(lost, sent):
    """Other words."""

    return loss_ratio(lost,
                      sent)
'''


def test_imports_docstrings_and_layout_do_not_change_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_hash, "ROOT", tmp_path)
    (tmp_path / "before.py").write_text(CODE)
    (tmp_path / "after.py").write_text(MOVED)
    assert source_hash.source_hash(["before.py"]) == source_hash.source_hash(["after.py"])


def test_code_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_hash, "ROOT", tmp_path)
    (tmp_path / "before.py").write_text(CODE)
    (tmp_path / "after.py").write_text(CODE.replace("lost, sent)  #", "sent, lost)  #"))
    assert source_hash.source_hash(["before.py"]) != source_hash.source_hash(["after.py"])
