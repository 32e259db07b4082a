# Three images of one checkout (docker build --target NAME -t ackademy:NAME .):
#   demo       the command `ackademy`, without the kernel backend; as an ordinary user
#   lab        that and ackademyd: scenarios on the host's kernel. Needs the host's Linux 6.4+ with BTF, and
#              docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add BPF --cap-add PERFMON --cap-add SYS_NICE \
#                --security-opt apparmor=unconfined --device /dev/net/tun -v /sys/kernel/btf:/sys/kernel/btf:ro ackademy:lab
#              SYS_ADMIN makes network namespaces and mounts a BPF file system, NET_ADMIN links and addresses, BPF and PERFMON load the
#              program, SYS_NICE keeps the emulator in time.
#   ackademyd  the static program alone, for a server's own TCP: docs/guide/deploy.md first, then
#              docker run --network host --cap-drop ALL --cap-add BPF --cap-add PERFMON -v /sys/kernel/btf:/sys/kernel/btf:ro \
#                ackademy:ackademyd kernel --cc new_reno --ephemeral
FROM rust:1-slim-trixie AS build
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    clang libelf-dev zlib1g-dev pkg-config make python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN python3 -m venv /opt/maturin && /opt/maturin/bin/pip install --quiet 'maturin>=1.16,<2' \
    && /opt/maturin/bin/maturin build --release --out /dist

FROM build AS daemon
RUN host=$(rustc --print host-tuple) \
    && RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --release --locked --package ackademy-net --target "$host" \
    && cp "target/$host/release/ackademyd" /dist/ackademyd

FROM python:3.13-slim-trixie AS demo
COPY --from=build /dist/*.whl /tmp/
RUN pip install --quiet --no-cache-dir /tmp/*.whl && useradd --create-home ackademy
USER ackademy
WORKDIR /home/ackademy
ENTRYPOINT ["ackademy"]
CMD ["run", "deep_buffer", "--cc", "cubic"]

FROM python:3.13-slim-trixie AS lab
RUN apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iproute2 iperf3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /dist/*.whl /tmp/
COPY --from=daemon /dist/ackademyd /usr/local/bin/
RUN pip install --quiet --no-cache-dir /tmp/*.whl
WORKDIR /work
ENTRYPOINT ["ackademy"]
CMD ["doctor"]

FROM scratch AS ackademyd
COPY --from=daemon /dist/ackademyd /ackademyd
COPY crates/net/THIRD-PARTY-LICENSES.txt LICENSE-MIT LICENSE-APACHE /licenses/
ENTRYPOINT ["/ackademyd"]
CMD ["--help"]
