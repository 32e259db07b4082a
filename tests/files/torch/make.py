# mypy: ignore-errors
"""Made the models beside it, as PyTorch 2.15's two exporters write them.

Needs torch and onnxscript, which no test does:

    python make.py

`script` is `torch.onnx.export(dynamo=False)`, `dynamo` its successor; `batch` has a batch of any
size. Comments that exporters leave in nodes are taken out: they name places on the
machine.
"""

from pathlib import Path

import onnx
import torch
from torch import nn

HISTORY, FEATURES, CHOICES = 8, 3, 3


class Conv(nn.Module):
    """Convolutions, channels first when they are flattened."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(FEATURES, 6, 3, padding=1), nn.Conv1d(6, 4, 2)
        self.pool, self.head = nn.MaxPool1d(2), nn.Linear(4 * 3, CHOICES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs of observations (batch, history, features)."""
        x = self.pool(torch.relu(self.first(x.transpose(1, 2))))
        return self.head(torch.flatten(torch.tanh(self.second(x)), 1))


class Recurrent(nn.Module):
    """The last output, or the state behind the last vector, of one or more layers."""

    def __init__(self, *layers: nn.Module, state: bool = False) -> None:
        super().__init__()
        self.layers, self.state = nn.ModuleList(layers), state
        self.head = nn.Linear(5, CHOICES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Outputs of observations (batch, history, features)."""
        for layer in self.layers:
            x, state = layer(x)
        state = state[0] if isinstance(state, tuple) else state
        return self.head(state[-1] if self.state else x[:, -1])


def recurrent(kind: type[nn.Module], wide: int = FEATURES, depth: int = 1) -> nn.Module:
    return kind(wide, 5, num_layers=depth, batch_first=True)


def models() -> dict[str, nn.Module]:
    torch.manual_seed(1)
    flat = HISTORY * FEATURES
    return {
        "mlp": nn.Sequential(
            nn.Flatten(), nn.Linear(flat, 6), nn.Tanh(), nn.Dropout(0.1),
            nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, CHOICES, bias=False),
        ),
        "steps": nn.Sequential(
            nn.Linear(FEATURES, 4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * HISTORY, CHOICES)
        ),
        "conv": Conv(),
        "lstm_output": Recurrent(recurrent(nn.LSTM)),
        "lstm_state": Recurrent(recurrent(nn.LSTM), state=True),
        "gru_output": Recurrent(recurrent(nn.GRU)),
        "gru_state": Recurrent(recurrent(nn.GRU), state=True),
        "lstm_gru": Recurrent(recurrent(nn.LSTM), recurrent(nn.GRU, 5)),
        "lstm_twice": Recurrent(recurrent(nn.LSTM, depth=2)),
    }  # fmt: skip


def export(model: nn.Module, path: Path, *, dynamo: bool, batch: bool) -> None:
    model.eval()
    names = {"input_names": ["observation"], "output_names": ["outputs"], "dynamo": dynamo}
    seen = torch.zeros(2 if batch else 1, HISTORY, FEATURES)
    if dynamo:
        more = {"external_data": False, "verbose": False}
        shapes = ({0: torch.export.Dim("batch")},) if batch else None
        torch.onnx.export(model, (seen,), path, dynamic_shapes=shapes, **names, **more)
    else:
        axes = {"observation": {0: "batch"}, "outputs": {0: "batch"}} if batch else None
        torch.onnx.export(model, (seen,), path, dynamic_axes=axes, **names)
    written = onnx.load(path)
    del written.metadata_props[:], written.graph.metadata_props[:], written.graph.value_info[:]
    for part in (*written.graph.node, *written.graph.input, *written.graph.output):
        del part.metadata_props[:]
        part.ClearField("doc_string")
    onnx.save(written, path)


if __name__ == "__main__":
    for name, model in models().items():
        for how in ("script", "dynamo"):
            for batch in (False, True):
                file = f"{name}_{how}{'_batch' if batch else ''}.onnx"
                path = Path(__file__).parent / file
                export(model, path, dynamo=how == "dynamo", batch=batch)
