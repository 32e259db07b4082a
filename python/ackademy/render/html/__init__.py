"""The HTML report: one file, no network, drawn here as SVG and text.

A chart is an SVG that stretches with its box while strokes and dots keep their size, and tick
labels are text beside it, so one file is right at every width, on paper and without JavaScript.
The script adds readings under the pointer and nothing else.
"""
