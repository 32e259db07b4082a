/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";
