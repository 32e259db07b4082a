"""Policies as ONNX models, and ONNX models as policies (docs/reference/onnx.md)."""
