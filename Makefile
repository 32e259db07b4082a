# Ackademy. Assumes cargo, Python >= 3.11 and, for `make peers`, root's apt; installs the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

RUNS ?= 100
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 20
UV_VERSION := 0.13.8

# uv from the PATH, or one of our own in build/.
UV := $(or $(shell command -v uv 2>/dev/null),build/uv/bin/uv)
# Not `uv run`: Ray would start each of its workers with it, in a copy of the project to be built.
BIN := .venv/bin/

.PHONY: help build demo test test-rust test-python bench lint peers fuzz wasm clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build/uv/bin/uv:
	python3 -m venv build/uv || { apt-get install -y python3-venv && python3 -m venv build/uv; }
	build/uv/bin/pip install --quiet uv==$(UV_VERSION)

build: $(UV) ## the extension module and the Python environment in .venv
	$(UV) sync --locked --quiet --inexact

demo: build ## Kong 2018, Table 5: table, assumptions, HTML report (RUNS=100)
	$(BIN)ackademy reproduce kong2018/table5 --runs $(RUNS) --jobs $(JOBS)

test: test-rust test-python ## all tests

test-rust:
	cargo test --workspace --quiet

test-python: $(UV)
	$(UV) sync --locked --quiet --inexact --extra ray
	$(BIN)pytest -q

bench: build ## speed against ns-2 and ns-3 where installed; rows in bench/results.json
	cargo bench --quiet --bench sim --no-run
	$(BIN)python benches/bench.py

lint: build ## format, clippy, ruff, mypy --strict, stubtest
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	$(BIN)ruff format --check .
	$(BIN)ruff check .
	$(BIN)mypy
	$(BIN)python -m mypy.stubtest ackademy._core

peers: build ## ns-2, ns-3 and ours side by side (installs Debian's ns2 and libns3-dev)
	command -v ns >/dev/null && test -f /usr/include/ns3/core-module.h || \
		{ apt-get update -qq && apt-get install -y -qq ns2 libns3-dev g++; }
	$(BIN)ackademy peers

wasm: ## core builds without an operating system
	! command -v rustup >/dev/null || rustup target add wasm32-unknown-unknown
	cargo build --quiet --package ackademy --lib --target wasm32-unknown-unknown

fuzz: ## scenario and trace parsers, FUZZ_SECONDS=20 each
	rustup toolchain list | grep nightly >/dev/null || rustup toolchain install nightly --profile minimal
	command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
	cd fuzz && for target in scenario trace; do \
		cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -verbosity=0; done

clean: ## remove what was built; results in runs/ and reports/ stay
	cargo clean
	rm -rf .venv build
