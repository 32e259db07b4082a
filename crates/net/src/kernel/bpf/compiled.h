/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space compiles a policy into; compiled/layout.rs holds the same layouts. */
#pragma once

#include <linux/types.h>

/* Layers, numbers between two layers, and words of weights and biases at most. */
#define LAYERS_MAX 4
#define VALUES_MAX 128
#define WORDS_MAX 6656
/* The table of the hyperbolic tangent ends here: beyond, it is 1. */
#define TANH_END 8
#define TANH_STEPS (TANH_END * 64)
#define FEATURES_MAX 16
/* Round trips kept for the smallest of a window, and room for them. */
#define KEPT_MOST 66
#define KEPT 128
/* Intervals that tell what the path delivers. */
#define DELIVERIES 3

enum activation {
	ACTIVATION_LINEAR,
	ACTIVATION_RELU,
	ACTIVATION_TANH,
};

struct layer {
	__u32 inputs; /* a multiple of 4 */
	__u32 units; /* a multiple of 8 */
	__u32 first; /* word */
	__u32 shift; /* a weight of 1 is 2^shift */
	__u32 activation;
	__u32 reserved;
};

/* Weights lie in groups of 8 units, two of them in a word, lower half first: of each group the biases, in
 * the scale of the sums, and then the weights of each input. */
struct network {
	__u32 count; /* of layers; 0: no network */
	__u32 reserved;
	struct layer layers[LAYERS_MAX];
	__u64 words[WORDS_MAX];
};

#define DE_BRUIJN 0x03f79d71b4cb0a89ULL

struct tables {
	__u32 log2[257]; /* log2(1 + i / 256) in Q24 */
	__u32 exp2[257]; /* 2^(i / 256) in Q30 */
	__u16 tanh[TANH_STEPS + 2]; /* tanh(i / 64) in Q15 */
	__u32 decay[65]; /* (7 / 8)^i in Q30 */
	__u32 reserved;
	__u8 bits[64]; /* which power of two has i in the upper six bits of its product with DE_BRUIJN */
};

/* In Q14. */
struct values {
	__s32 of[VALUES_MAX];
};

struct evaluation {
	struct values input;
	struct values first; /* of the two that the layers' results alternate between */
	struct values second;
};

/* Numbers of the law, and what the network takes. */
struct policy {
	__u64 target; /* own packets in the queue at 10 Mb/s, Q16 */
	__u32 loss_limit; /* Q20 */
	__u32 width; /* features of a vector; 0: the law alone */
	__u32 rows;
	__s32 limit; /* largest valid output, Q14 */
	__u32 guarded; /* 1: `low` and `high` hold */
	__u32 contended; /* 1: a rate is held, and actions apply, under contention */
	__u32 features[FEATURES_MAX]; /* enum feature */
	/* What training saw of each feature, Q14. */
	__s32 low[FEATURES_MAX];
	__s32 high[FEATURES_MAX];
};

/* In the order of the names in mod.rs. */
enum feature {
	FEATURE_QUEUE,
	FEATURE_RTT_RISE,
	FEATURE_RTT_SPREAD,
	FEATURE_LOSS_LOG,
	FEATURE_CE_RATIO,
	FEATURE_DRAIN,
	FEATURE_RTT_CHANGE,
	FEATURE_BASE_RTT,
	FEATURE_BASE_AGE,
	FEATURE_OWN_BEST,
	FEATURE_APP_LIMITED,
	FEATURE_SINCE_LOSS,
	FEATURE_ACTION_0,
	FEATURE_ACTION_1,
	FEATURE_COUNT,
};

/* A monitor interval: as Interval of signals.rs. Times in ns. */
struct interval {
	__u64 now;
	__u64 duration;
	__u64 rtt_min;
	__u64 rtt_mean;
	__u64 rtt_sd;
	__u64 srtt;
	__u64 base;
	__u64 base_age;
	__u64 jitter;
	__u64 acked; /* packets */
	__u64 lost;
	__u64 marked;
	__u64 app_limited;
	__u64 inflight_mean; /* packets, Q16 */
	__u64 delivery; /* packets per second, Q16 */
	__u64 delivery_max;
	__s32 drain; /* Q14 */
	__s32 rtt_change; /* s/s, Q14 */
	__u32 since_loss; /* intervals */
	__u32 timeout;
};

/* The largest of recent samples: as windowed_max.rs. */
struct largest {
	__u64 at[3];
	__u64 value[3];
};

struct near_min {
	__u32 at_us;
	__u32 rtt_us;
};

/* The smallest of recent samples: as windowed_min.rs. */
struct smallest {
	__u32 head;
	__u32 length;
	struct near_min kept[KEPT];
};

/* As Signals of signals.rs. */
struct signals {
	/* Of the interval under way. */
	__u64 acked;
	__u64 lost;
	__u64 marked;
	__u64 app_limited;
	__u64 inflight; /* packets times packets */
	__u32 lost_before; /* part of `lost` from before the latest episode */
	__u32 timeout;
	__u64 weight; /* of the samples */
	__u64 first;
	__u64 min;
	__u64 min_at;
	__s64 sum_us; /* of differences to the first */
	__u64 square_us2;
	struct smallest base; /* of 10 s */
	__u64 near_base;
	struct largest delivery;
	__u64 recent[4];
	/* As Jitter of jitter.rs. */
	__u64 differences[2];
	__u64 jitter_mean;
	__u64 round_trips;
	__u64 delivered;
	struct interval last;
};

/* As Law of own_queue; windows and packets in Q16, times in ns. */
struct law {
	__s64 cwnd;
	__s64 initial;
	__s64 until; /* of the start */
	__s64 before;
	__s64 earlier; /* window of the interval before the present one, whose effect the present one shows */
	__u64 left; /* when the start ended, until a packet sent later has come back; 0: none to wait for */
	__u64 rtt; /* of the latest interval: the mean of its parts' smallest */
	__u32 starting;
	__u32 below;
	__u32 steady;
	__u32 velocity; /* Q16 */
	__u64 found;
	struct largest found_max;
	/* The parts of an interval. */
	__u64 part_begin;
	__u64 part_least;
	__u64 part_sum;
	__u32 part_packets;
	__u32 parts;
	/* Consecutive samples of the start. */
	__u64 group_rtt;
	__u64 group_rate; /* packets per second, Q16 */
	__u32 group_packets;
	__u32 bloated; /* intervals in a row with far too long a queue */
	struct largest rate_max; /* of a minute */
	struct smallest base; /* of a minute */
	/* A held rate. */
	struct largest calm_max; /* delivery rate without contention */
	__u64 lost_mean; /* part of what is lost, Q32 */
	__u64 held; /* packets per second, Q16; 0: none */
	__s64 hold_cwnd; /* window when it was last compared; 0 once the flow has its rate */
	__u64 hold_rtt;
	__u64 hold_given; /* delivery rate then */
	__u64 event_packets; /* since the latest event */
	__u64 event_mean; /* between events, Q16 */
	__u64 event_longest; /* queue since a loss or fall */
	__u32 calm_intervals; /* without contention or a long queue */
	__u32 holding;
	__u32 hold_reached; /* the window has been what the rate asks for */
	__u32 behind; /* intervals in a row with too small a delivery rate */
	__u32 events;
	__u32 event_intervals; /* since the latest loss or fall */
	/* Contention. */
	__u64 long_since; /* end of the first of `long_intervals`; nothing where there are none */
	__u64 sign_at; /* when there was the latest sign; 0: never */
	__u64 quiet_since; /* the latest loss or mark since signs began, or when they began; 0: there are none */
	__u64 lapsed; /* the queue at which signs lapsed, and 1 ns; 0: they have not */
	__u32 sign_age; /* intervals since */
	__u32 long_intervals; /* with a long queue, in a row */
	/* Losses. */
	__s64 pending;
	__s64 lost; /* Q32: its share of what was sent is small, and its root counts */
	__s64 sent;
	__s64 own; /* Q20 */
	__s64 ceiling;
	__s64 ceiling_step;
	__s64 delivered[DELIVERIES]; /* by each of the latest intervals, packets per round trip */
	__u64 ceiling_since; /* time since it was set */
	__s64 overload; /* what a round trip delivered at the latest */
	__s64 known_delivered;
	__u64 known_rest;
	__u32 known; /* 1: the latest overload came again without a queue, as behind a policer; 2: it has just done so */
	__u32 known_beyond; /* intervals with a ceiling well above it */
	__u32 calm;
	/* What is found out after a cut. */
	__u32 probing;
	__s64 probe_cwnd;
	__s64 probe_ratio; /* Q20 */
	__u64 probe_queue;
	__u64 probe_queue_after;
	__s64 probe_lost;
	__s64 probe_sent;
	__s64 probe_delivered;
	__u32 probe_intervals;
	/* Drains. */
	__u32 draining;
	__u32 reached; /* no more than its window is in flight: the window is as before */
	__u32 over;
	__u32 rest;
	__u32 settling; /* intervals to come whose losses have been answered */
	__u64 random[4];
	__u64 empty_at;
	__u64 jitter; /* Q24 */
	__u64 drain_since;
	__s64 drain_window;
	__u64 drains;
	__u64 cuts;
	__u64 undone; /* when a spurious loss was undone */
};

/* Of an acknowledgement what signals and law take. */
struct delivery {
	__u64 now;
	__u64 sent_at;
	__u64 rtt; /* 0: no sample */
	__u64 srtt;
	__u64 min_rtt; /* smallest of the flow so far */
	__u64 rate; /* delivery-rate sample, packets per second, Q16; 0: none */
	__u32 acked; /* packets */
	__u32 found; /* in flight before */
	__u32 app_limited;
	__u32 growing; /* the window is full, and no recovery is on */
};

/* What a loss is. */
enum loss {
	LOSS_MORE,
	LOSS_GAP,
	LOSS_TIMEOUT,
	LOSS_TIMEOUT_AGAIN,
	LOSS_SPURIOUS,
	LOSS_IDLE,
};

/* Everything that is kept of a flow. */
struct governed {
	struct evaluation evaluation;
	struct signals signals;
	struct law law;
	__u64 srtt; /* ns */
	__u64 end; /* of the interval */
	__s32 action[2]; /* the latest, Q14 */
	__u64 decisions;
	/* Of the connection, as last taken. */
	__u32 delivered;
	__u32 held;
	__u32 lost;
	__u32 outside; /* latest intervals with a feature beyond what training saw, the newest in the lowest bit */
};

/* For asking what is computed, without a connection. */
struct question {
	struct governed governed;
	struct delivery delivery;
	__u64 number;
	__s64 answer[16];
};

_Static_assert(sizeof(struct network) == 8 + 24 * LAYERS_MAX + 8 * WORDS_MAX, "layout.rs");
_Static_assert(sizeof(struct tables) == 8 * 257 + 2 * (TANH_STEPS + 2) + 4 * 66 + 64, "layout.rs");
_Static_assert(sizeof(struct policy) == 32 + 12 * FEATURES_MAX, "layout.rs");
_Static_assert(sizeof(struct delivery) == 64, "layout.rs");
_Static_assert(sizeof(struct governed) == 8 * 589, "layout.rs");
_Static_assert(__builtin_offsetof(struct governed, law) == 8 * 367, "layout.rs");
_Static_assert(__builtin_offsetof(struct governed, srtt) == 8 * 583, "layout.rs");
_Static_assert(sizeof(struct evaluation) == 12 * VALUES_MAX, "layout.rs");
