/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What crosses between this program and user space; record.rs holds the same layouts. */
#pragma once

#include <linux/types.h>

/* Changes with every change of a layout or of a meaning below. */
#define ABI_VERSION 14

#define LATENCY_BUCKETS 256
/* TCP_CA_NAME_MAX */
#define CA_NAME_MAX 16

enum record_kind {
	RECORD_OPEN = 1,
	RECORD_SAMPLE,
	RECORD_GAP, /* a loss episode began; its first loss may have been told before, in the one before it */
	RECORD_TIMEOUT,
	RECORD_IDLE,
	RECORD_CLOSE,
	RECORD_MARK, /* the kernel answers an echoed mark, or a packet that its own device's queue refused */
	RECORD_SPURIOUS, /* the kernel found that the latest GAP or TIMEOUT was spurious, and restored its window */
};

enum record_flag {
	/* The newest delivery-rate sample was limited by the application. */
	FLAG_APP_LIMITED = 1,
	/* The window was full during the batch. */
	FLAG_CWND_LIMITED = 2,
	/* Lost packets are being repaired: an episode that follows may begin with one that is lost already. */
	FLAG_REPAIRING = 4,
	/* A RECORD_TIMEOUT of what had been answered: a packet that timed out before, or within a reduction. */
	FLAG_ANSWERED = 8,
};

/* Up: what happened to a flow. Counts of packets never reset, so a record that the full ring refuses
 * loses nothing but time. */
struct record {
	__u32 kind;
	__u32 slot;
	__u32 generation; /* of the slot */
	__u32 flags;
	__u64 number; /* of the record within its flow, from 1 */
	__u64 now; /* bpf_ktime_get_ns */
	__u64 sent_at; /* the newest delivered packet left; same clock */
	__u32 rtt_us; /* newest round-trip sample since the last record; 0: none */
	__u32 rtt_max_us;
	__u32 srtt_us;
	__u32 min_rtt_us;
	__u32 delivered; /* packets since the connection began */
	__u32 delivered_ce;
	__u32 held; /* part of delivered during which no window grows */
	__u32 lost; /* packets declared lost since the connection began, and losses that a probe repaired */
	__u32 inflight; /* packets */
	__u32 newest; /* part of delivered that the newest acknowledgement delivered */
	__u32 flight; /* packets outstanding when the loss was declared */
	__u32 rate_delivered; /* newest delivery-rate sample: packets ... */
	__u32 rate_interval_us; /* ... in this time */
	__u32 decisions; /* totals of the flow */
	__u32 fallbacks;
	__u32 refused;
	__u32 invalid;
	__u32 rtt_min_us; /* smallest since the last record; 0: none */
};

enum verdict {
	VERDICT_OBEY,
	/* Obey, and until the next decision let the window grow by what is delivered, up to ssthresh:
	 * the controller is in slow start. */
	VERDICT_GROW,
	/* No sender can obey what the controller wants: CUBIC until it wants something else. */
	VERDICT_INVALID,
	/* CUBIC until the flow ends. */
	VERDICT_ABANDON,
};

enum decision_flag {
	/* The controller has given itself up: the agent's own CUBIC decides. */
	DECISION_FELL_BACK = 1,
};

/* Down: what a flow may do. */
struct decision {
	__u64 sequence; /* odd while it is being written */
	__u32 generation; /* of the slot */
	__u16 verdict;
	__u16 flags;
	__u64 number; /* of the newest record it answers */
	__u64 sampled_at; /* when that record was made */
	__u64 written_at;
	__u64 pacing; /* payload bytes per second; all ones: none */
	__u32 cwnd; /* packets */
	__u32 ssthresh; /* packets */
	__u32 base; /* delivered less held of that record */
	__u32 barrier; /* the BPF program's */
};

enum flow_state {
	FLOW_FREE,
	FLOW_AGENT, /* obeys decisions */
	FLOW_CUBIC, /* waits for a decision */
	FLOW_ABANDONED, /* CUBIC for good, or until it gets a slot */
};

/* What anyone may read of the flow in a slot. */
struct flow {
	__u32 state;
	__u32 generation; /* raised whenever a flow gets or loses the slot */
	__u64 opened_at;
	__u64 updated_at;
	__u64 netns; /* inode */
	__u8 local[16]; /* IPv4 in the first four */
	__u8 remote[16];
	__u16 family;
	__u16 local_port;
	__u16 remote_port;
	__u16 header; /* bytes of IP and TCP header with the options of every packet */
	__u32 mss; /* payload bytes of a full packet at the opening */
	__u32 initial_cwnd; /* packets */
	__u32 initial_ssthresh; /* packets */
	__u32 srtt_us;
	__u32 min_rtt_us;
	__u32 cwnd; /* packets */
	__u32 ssthresh; /* packets */
	__u32 inflight; /* packets */
	__u64 pacing; /* payload bytes per second */
	__u64 samples;
	__u64 decisions;
	__u64 fallbacks;
	__u64 refused;
	__u64 invalid;
	__u32 delivered; /* as in the newest record */
	__u32 delivered_ce;
	__u32 held;
	__u32 lost;
	__u32 fell_back; /* 1: DECISION_FELL_BACK holds */
	__u32 token; /* of the MPTCP connection that it is a subflow of; 0: plain TCP */
	__u32 subflow; /* the kernel's number of the subflow within its connection */
	__u32 owner; /* user of the socket */
};

/* What became of a socket under this congestion control, when all were handed back. */
enum handed {
	HANDED_FLOW = 1,
	HANDED_LISTENER,
	HANDED_NOTHING, /* the kernel refused */
};

/* How to serve. */
struct settings {
	__u32 abi; /* this and the name are here in every version */
	__u32 slots;
	char name[CA_NAME_MAX];
	__u64 interval; /* ns */
	__u64 watchdog; /* ns */
	__u32 paced; /* 1: `min_tso_segs` is there, for flows under a rate */
	__u32 in_kernel; /* 1: decisions are made here, without a daemon */
};

/* Counts over all flows. */
struct totals {
	__u64 opened;
	__u64 closed;
	__u64 without_slot;
	__u64 samples;
	__u64 decisions;
	__u64 fallbacks;
	__u64 refused;
	__u64 invalid;
	__u64 policy_fallbacks; /* flows whose controller gave itself up */
	__u64 reassigned; /* slots that a flow lost to another */
	/* Record made until decision applied: four buckets per power of two of nanoseconds. */
	__u64 latency[LATENCY_BUCKETS];
};

_Static_assert(sizeof(struct record) == 112, "record.rs");
_Static_assert(sizeof(struct decision) == 64, "record.rs");
_Static_assert(sizeof(struct flow) == 184, "record.rs");
_Static_assert(sizeof(struct settings) == 48, "record.rs");
_Static_assert(sizeof(struct totals) == 80 + 8 * LATENCY_BUCKETS, "record.rs");
