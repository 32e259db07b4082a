"""What this installation and this machine have, and the command that adds what is missing.

Everything is read from metadata and from files of the system: nothing that takes time is imported,
and nothing is changed.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distribution,
    distributions,
    version,
)
from pathlib import Path
from typing import Literal

import ackademy
from ackademy import _core, installation
from ackademy.backends.programs import ackademyd
from ackademy.errors import KernelError

Status = Literal["ok", "absent", "broken"]

LINUX = (6, 4)
"""first release whose CUBIC a BPF program can replace"""
BTF, SELF = Path("/sys/kernel/btf/vmlinux"), Path("/proc/self/status")
STRUCT_OPS = b"bpf_struct_ops_tcp_congestion_ops"
MPTCP, BPFFS = Path("/proc/sys/net/mptcp/enabled"), Path("/sys/fs/bpf")
TUN = Path("/dev/net/tun")
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
"""bits that a run on the kernel needs"""
AS_ROOT = '`sudo -E env PATH="$PATH" ackademy ...`'
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")
GPUS = {
    Path("/dev/nvidiactl"): ("NVIDIA", "jax-cuda", installation.add_package("jax[cuda12]")),
    Path("/dev/kfd"): ("AMD", "jax-rocm", "AMD's packages for JAX"),
}
"""device file of a maker, what the names of JAX's packages for it begin with, what adds them"""
EXTRAS = {
    "onnx": "`export`, `import`",
    "ray": "`--engine ray`",
    "record": "`record`",
    "torch": "Stable-Baselines3, RLlib",
    "train": "`train`, environments",
}
"""what an extra is for"""
FREE_LEAST = 10**9
"""bytes on the disk of the cells below which a long study may stop"""
DAEMON_S = 2.0
"""for the daemon to say its version"""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    group: str
    name: str
    status: Status
    """`absent` is optional; `broken` keeps the program from working"""
    found: str
    needed_for: str = ""
    fix: str = ""
    """what to do, with a command between backquotes; empty if all is well"""


def checks(folder: Path) -> list[Check]:
    """Everything that is looked at, in the order of the table.

    Args:
        folder: of finished work, whose disk is looked at.
    """
    machine = [_disk(folder), *_accelerators(), _browser()]
    return [*_versions(), *_extras(), *machine, *_kernel()]


def _versions() -> Iterator[Check]:
    group = "versions"
    if ackademy.__version__ == _installed("ackademy", ackademy.__version__):
        yield Check(group, "ackademy", "ok", ackademy.__version__)
    else:
        found = f"{ackademy.__version__}, installed as {_installed('ackademy', '')}"
        yield Check(group, "ackademy", "broken", found, fix=installation.again())
    yield Check(group, "core", "ok", f"{_core.CODE_HASH[:12]}")
    yield Check(group, "Python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield Check(group, "platform", "ok", platform.platform(aliased=True))


def _disk(folder: Path) -> Check:
    """Free bytes where cells are kept: in the folder, or in the nearest above that is there."""
    group, name, about = "machine", f"disk of {folder}", "finished runs"
    here = folder.absolute()
    while not here.exists():
        here = here.parent
    if not here.is_dir() or not os.access(here, os.W_OK):
        fix = "another folder: `cd`, or --work"
        return Check(group, name, "broken", f"{here} cannot be written", about, fix)
    free = shutil.disk_usage(here).free
    status: Status = "ok" if free >= FREE_LEAST else "absent"
    fix = "" if status == "ok" else "free space, or another disk with --work"
    return Check(group, name, status, f"{free / 1e9:.1f} GB free", about, fix)


def _extras() -> Iterator[Check]:
    """The extras that the package's metadata names, and which of their packages are missing."""
    try:
        own = distribution("ackademy")
    except PackageNotFoundError:
        yield Check("extras", "all", "absent", "ackademy runs from its sources, not installed")
        return
    yield _lacking("needed", own, "", "everything", "broken")
    for extra in own.metadata.get_all("Provides-Extra") or ():
        yield _lacking(extra, own, extra, EXTRAS.get(extra, ""), "absent")


def _lacking(name: str, own: Distribution, extra: str, about: str, otherwise: Status) -> Check:
    missing: list[str] = []
    found: list[str] = []
    for package, least in requirements(own, extra).items():
        has = _installed(package, "")
        (found if has and numbers(has) >= numbers(least) else missing).append(
            f"{package} {has or f'>= {least}'}"
        )
    if not missing:
        return Check("extras", name, "ok", ", ".join(found), about)
    fix = installation.add_extra(extra) if extra else installation.again()
    return Check("extras", name, otherwise, f"without {', '.join(missing)}", about, fix)


def requirements(own: Distribution, extra: str) -> Mapping[str, str]:
    """Packages of an extra, or of none, with the least version of each."""
    found = {}
    for line in own.requires or ():
        need, _, marker = line.partition(";")
        of = re.search(r"extra *== *['\"]([\w-]+)", marker)
        parts = re.match(r"([\w.-]+)(?:\[[^]]*\])?[^>]*(?:>=\s*([\d.]+))?", need.strip())
        if parts and (of[1] if of else "") == extra:
            found[parts[1]] = parts[2] or "0"
    return found


def numbers(release: str) -> tuple[int, ...]:
    """The numbers that a version begins with, `2.1.0rc1` and `2.1` alike."""
    parts = re.match(r"\d+(?:\.\d+)*", release)
    found = [int(part) for part in parts[0].split(".")] if parts else []
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _accelerators() -> Iterator[Check]:
    """Ray, and what JAX computes on, by the packages that are installed."""
    ray = _installed("ray", "")
    cluster = os.environ.get("RAY_ADDRESS", "")
    found = f"ray {ray}, {f'cluster {cluster}' if cluster else 'a cluster is started when used'}"
    yield (
        Check("machine", "Ray", "ok", found, EXTRAS["ray"])
        if ray
        else Check("machine", "Ray", "absent", "-", EXTRAS["ray"], installation.add_extra("ray"))
    )
    jax, about = _installed("jax", ""), "faster training"
    for device, (maker, prefix, add) in GPUS.items():
        if device.exists():
            names = (str(own.name) for own in distributions())
            plugin = next((name for name in names if name.startswith(prefix)), "")
            found = f"{maker}, {plugin or 'which JAX does not use'}"
            fix = "" if plugin else add
            yield Check("machine", "GPU", _optional(bool(plugin)), found, about, fix)
            return
    cpu = f"JAX {jax} computes on the processor" if jax else "no GPU"
    yield Check("machine", "GPU", "ok", cpu, about)


def _kernel() -> Iterator[Check]:
    """What `--backend kernel`, `gap` and the daemon need."""
    group = "kernel"
    if sys.platform != "linux":
        fix = "a machine or a virtual machine with Linux"
        yield Check(group, "Linux", "absent", platform.system(), "`--backend kernel`", fix)
        return
    release = platform.release()
    is_new = numbers(release) >= LINUX
    least = ".".join(map(str, LINUX))
    fix = "" if is_new else f"a kernel from Linux {least} on"
    yield Check(group, "Linux", _optional(is_new), release, "`--backend kernel`", fix)
    has = BTF.is_file() and STRUCT_OPS in BTF.read_bytes()
    fix = "" if has else "a kernel with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_JIT, as Debian's"
    about = "controllers in the kernel"
    yield Check(group, "BTF, struct_ops", _optional(has), str(BTF) if has else "-", about, fix)
    lacking = lacking_capabilities()
    found = f"without {', '.join(lacking)}" if lacking else ", ".join(CAPABILITIES)
    fix = AS_ROOT if lacking else ""
    yield Check(group, "capabilities", _optional(not lacking), found, "`--backend kernel`", fix)
    yield _daemon()
    yield _program("ip", "iproute2", "network namespaces")
    has = TUN.exists()
    fix = "" if has else "`sudo modprobe tun`"
    yield Check(group, "tun", _optional(has), str(TUN) if has else "-", "emulated links", fix)
    yield _mptcp()
    has = os.path.ismount(BPFFS)
    fix = "" if has else f"`sudo mount -t bpf bpf {BPFFS}`"
    about = "a daemon that outlives its process"
    yield Check(group, "BPF file system", _optional(has), str(BPFFS) if has else "-", about, fix)


def lacking_capabilities() -> list[str]:
    """Names of the capabilities that a run on the kernel needs and this process lacks."""
    line = re.search(r"^CapEff:\s*([0-9a-f]+)", SELF.read_text(), re.MULTILINE)
    bits = int(line[1], 16) if line else 0
    return [name for name, bit in CAPABILITIES.items() if not bits >> bit & 1]


def _daemon() -> Check:
    """The program, and whether it is of this package's version."""
    try:
        program = ackademyd.find()
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=DAEMON_S, check=True
        )
    except (KernelError, OSError, subprocess.SubprocessError) as error:
        found = "-" if isinstance(error, KernelError) else f"does not run: {error}"
        fix = installation.build_daemon()
        return Check("kernel", "ackademyd", "absent", found, "`--backend kernel`", fix)
    release = done.stdout.strip().rpartition(" ")[2]
    is_ours = release == ackademy.__version__
    fix = "" if is_ours else f"one of {ackademy.__version__}: {installation.build_daemon()}"
    found = f"{release}, {program}"
    return Check("kernel", "ackademyd", _optional(is_ours), found, "`--backend kernel`", fix)


def _mptcp() -> Check:
    value = MPTCP.read_text().strip() if MPTCP.is_file() else ""
    found = {"1": "on", "0": "net.mptcp.enabled is 0"}.get(value, "not in this kernel")
    fix = {"1": "", "0": "`sudo sysctl -w net.mptcp.enabled=1`"}.get(
        value, "a kernel with CONFIG_MPTCP"
    )
    about = "multipath scenarios on the kernel"
    return Check("kernel", "MPTCP", _optional(value == "1"), found, about, fix)


def _browser() -> Check:
    """A browser, to look at the pages that studies write."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), "")
    if found or sys.platform != "linux":
        return Check("machine", "browser", "ok", found or "the system's", "reports")
    return Check("machine", "browser", "absent", "-", "reports", _apt("chromium"))


def _program(name: str, package: str, about: str) -> Check:
    path = shutil.which(name)
    fix = "" if path else _apt(package)
    return Check("kernel", name, _optional(path is not None), path or "-", about, fix)


def _apt(package: str) -> str:
    has = shutil.which("apt-get")
    return f"`sudo apt-get install {package}`" if has else f"your system's package {package}"


def _optional(has: bool) -> Status:
    return "ok" if has else "absent"


def _installed(package: str, otherwise: str) -> str:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise
