/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program keeps: of every socket, of every slot, of all. */
#pragma once

#include "abi.h"
#include "compiled.h"
#include "kernel.h"

#define PACING_NONE (~0ULL)
#define NO_SLOT 0xffffffff

/* What is kept of a socket. */
struct state {
	__u32 slot;
	__u32 generation;
	__u32 mode; /* enum flow_state */
	__u32 pending; /* kinds of events not yet told, a bit each */
	/* Tally since the connection began. */
	__u32 delivered;
	__u32 held;
	__u32 una;
	__u32 min_rtt_us;
	/* Tally since the last record. */
	__u32 rtt_us;
	__u32 rtt_max_us;
	__u32 rtt_min_us;
	__u32 cwnd_limited;
	__u32 reported; /* delivered and lost, as last told */
	__u32 app_limited;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 flight;
	__u32 newest; /* packets that the newest acknowledgement delivered */
	__u32 fell_back; /* DECISION_FELL_BACK holds */
	__u64 next_sample;
	/* Questions. */
	__u64 number; /* of the newest record */
	__u64 asked; /* number of the oldest record without answer; 0: none */
	__u64 asked_at;
	__u64 newest_at;
	__u64 timeout; /* number of the last time-out's record */
	__u64 gap; /* number of the record of the last episode's beginning */
	__u64 idle; /* number of the record of the last restart */
	__u64 spurious; /* number of the record of the last loss that was undone */
	/* Answers. */
	__u64 sequence;
	__u64 answered;
	__u64 pacing;
	__u32 cwnd;
	__u32 growing;
	__u32 paced; /* by us */
	__u32 base;
	__u32 samples;
	__u32 decisions;
	__u32 fallbacks;
	__u32 refused;
	__u32 invalid;
	/* Proportional rate reduction (RFC 9937). */
	__u32 prr_delivered;
	__u32 recover_fs;
	__u32 probed; /* losses that a probe repaired: the kernel does not count them as lost */
	__u32 again; /* the latest time-out was of what had been answered already */
	__u64 unexplained; /* when CWR began, on TCP's clock, until it is known why; 0: nothing to find out */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct decision);
} decisions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, __u32);
} free_slots SEC(".maps");

/* Where the search for a slot to take goes on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} hand SEC(".maps");

/* Slots by user; users of the same remainder count as one. */
#define SHARES 1024
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SHARES);
	__type(key, __u32);
	__type(value, __u32);
} shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* Of flows whose decisions are made here. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct governed);
} governed_flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct network);
} network SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy);
} policy SEC(".maps");

/* 1: decisions are made here. Known when the program is loaded, so that the verifier drops what is not used. */
const volatile __u32 in_kernel = 0;

#define count(member)                                                          \
	do {                                                                   \
		__u32 _zero = 0;                                               \
		struct totals *_totals = bpf_map_lookup_elem(&totals, &_zero); \
		if (_totals)                                                   \
			__sync_fetch_and_add(&_totals->member, 1);             \
	} while (0)
