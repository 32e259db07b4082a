/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading and setting a socket. */
#pragma once

#include "maps.h"

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
/* `sk_max_pacing_rate` of an application that has set none. */
#define PACING_UNLIMITED (~0UL)
/* Samples per smallest round trip, as a shift: while the window doubles in one, and later. A rule per acknowledgement or
 * per round trip stands a record of an eighth of one. */
#define SLOW_START_SHIFT 4
#define AVOIDANCE_SHIFT 3
/* Shortest time between the samples of a flow, unless the settings ask for less. */
#define INTERVAL_MIN NSEC_PER_MSEC

static __always_inline __u32 min_u32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 max_u32(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct state *state_of(struct sock *sk)
{
	return bpf_sk_storage_get(&sockets, sk, 0, 0);
}

static __always_inline __u8 ca_state(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

static __always_inline __u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* A loss that a probe repaired is one all the same (RFC 8985 section 7.4). */
static __always_inline __u32 lost_packets(const struct tcp_sock *tp, const struct state *st)
{
	return tp->lost + st->probed;
}

/* Whether the kernel has begun to answer a mark since the last call. Of a loss that a probe repaired `set_state`
 * knows before. */
static __always_inline bool newly_marked(struct state *st)
{
	bool marked = st->unexplained;

	st->unexplained = 0;
	return marked;
}

static __always_inline bool reducing(__u8 ca)
{
	return ca == CA_CWR || ca == CA_RECOVERY;
}

static __always_inline void set_cwnd(struct tcp_sock *tp, __u32 cwnd)
{
	tp->snd_cwnd = min_u32(max_u32(cwnd, 1), tp->snd_cwnd_clamp);
}

/* As tcp_update_pacing_rate, which the kernel leaves to a congestion control with cong_control.
 * The rate bounds how much is handed to the device at once even where nothing is paced. */
static __always_inline __u64 usual_pacing(const struct tcp_sock *tp)
{
	__u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	__u64 rate = (__u64)tp->mss_cache * (10000 << 3) * percent;

	rate *= max_u32(tp->snd_cwnd, tp->packets_out);
	return tp->srtt_us ? rate / tp->srtt_us : rate;
}

/* The word of the socket's private room that holds `min_tso_segs`; CUBIC, which has the room beside us, uses the first
 * eight of thirteen. */
#define SEGMENTS_WORD 12

/* How many packets leave together at least; 0: as the kernel is set. Kept where it is found without a look-up: it is
 * asked for everything that is sent, several times for every acknowledgement. */
static __always_inline void set_segments(struct sock *sk, __u64 packets)
{
	((struct inet_connection_sock *)sk)->icsk_ca_priv[SEGMENTS_WORD] = packets;
}

/* Pacing that the application or the fq queue has turned on stays on: a largest rate of the application's holds only
 * while packets are paced. */
static __always_inline void end_pacing(struct sock *sk, struct state *st)
{
	if (st->paced && sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == PACING_UNLIMITED)
		sk->sk_pacing_status = SK_PACING_NONE;
	st->paced = 0;
}

static __always_inline void set_pacing(struct sock *sk, struct state *st, __u64 pacing)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 slowest = 10ULL * tp->mss_cache; /* a packet every 100 ms, should the agent be gone */

	/* Under a controller's rate one: two would wait for each other at a slow link, and the controller would take that
	 * for a queue. */
	set_segments(sk, pacing != PACING_NONE);
	if (pacing == PACING_NONE) {
		pacing = usual_pacing(tp);
		end_pacing(sk, st);
	} else if (sk->sk_pacing_status == SK_PACING_NONE) {
		sk->sk_pacing_status = SK_PACING_NEEDED;
		st->paced = 1;
	}
	if (pacing < slowest)
		pacing = slowest;
	if (pacing > sk->sk_max_pacing_rate)
		pacing = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = pacing;
}

/* Counts what has been delivered since the last call. `ca` is the state that the acknowledgement
 * led to: the one that ends a recovery counts for growth, the one that starts it does not. */
static __always_inline void tally(const struct tcp_sock *tp, struct state *st, __u8 ca)
{
	__u32 delivered = tp->delivered - st->delivered;

	st->delivered = tp->delivered;
	if (delivered)
		st->newest = delivered;
	/* A duplicate acknowledgement may be the first sign of loss: the window waits (RFC 5681
	 * section 3.2). */
	if (reducing(ca) || tp->snd_una == st->una)
		st->held += delivered;
	st->una = tp->snd_una;
}

/* As tcp_is_cwnd_limited. */
static __always_inline bool cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

static __always_inline void take_samples(struct tcp_sock *tp, struct state *st,
					 const struct rate_sample *rs)
{
	/* Of a retransmission the kernel takes the time from the timestamp option, in whole
	 * milliseconds: up to one too short, and the smallest of a flow would stay so. */
	if (rs->rtt_us > 0 && !rs->is_retrans) {
		st->rtt_us = rs->rtt_us;
		st->rtt_max_us = max_u32(st->rtt_max_us, st->rtt_us);
		if (!st->rtt_min_us || st->rtt_us < st->rtt_min_us)
			st->rtt_min_us = st->rtt_us;
		if (!st->min_rtt_us || st->rtt_us < st->min_rtt_us)
			st->min_rtt_us = st->rtt_us;
	}
	if (rs->delivered > 0 && rs->interval_us > 0) {
		st->rate_delivered = rs->delivered;
		st->rate_interval_us = rs->interval_us;
		st->app_limited = rs->is_app_limited;
	}
	st->cwnd_limited |= cwnd_limited(tp);
}

static __always_inline __u64 sample_interval(const struct tcp_sock *tp, const struct state *st,
					     const struct settings *set)
{
	__u64 rtt = (st->min_rtt_us ? st->min_rtt_us : tp->srtt_us >> 3) * NSEC_PER_USEC;
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	__u64 interval = rtt >> (slow_start ? SLOW_START_SHIFT : AVOIDANCE_SHIFT);

	if (interval < INTERVAL_MIN)
		interval = INTERVAL_MIN;
	return interval < set->interval ? interval : set->interval;
}
