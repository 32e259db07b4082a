/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What comes down, and how it is obeyed; CUBIC where it does not come. */
#pragma once

#include "tell.h"

/* RFC 6928: what an idle flow starts again with until its controller answers. */
#define RESTART_WINDOW 10

static __always_inline void fall_back(struct sock *sk, struct state *st)
{
	struct tcp_sock *tp = tcp_sk(sk);

	st->mode = FLOW_CUBIC;
	st->fallbacks++;
	count(fallbacks);
	cubictcp_init(sk);
	/* A controller that goes by rate sets no threshold; CUBIC must not double from its window. */
	if (tp->snd_ssthresh >= SSTHRESH_INFINITE && tp->lost)
		tp->snd_ssthresh = max_u32(tp->snd_cwnd, 2);
	/* Nobody has answered the last loss: RFC 9438 section 4.6. */
	if (st->answered < st->gap || st->answered < st->timeout)
		tp->snd_ssthresh = max_u32(st->flight * 7 / 10, 2);
	set_pacing(sk, st, PACING_NONE);
	show(sk, st, bpf_ktime_get_ns());
}

static __always_inline __u32 bucket(__u64 value)
{
	__u32 log = 0;

	for (int shift = 32; shift >= 1; shift >>= 1) {
		if (value >> (log + shift))
			log += shift;
	}
	/* The two bits below the leading one. */
	return log < 2 ? value & 3 : (log << 2 | ((value >> (log - 2)) & 3));
}

static __always_inline void note_latency(__u64 since, __u64 now)
{
	__u32 zero = 0;
	struct totals *all = bpf_map_lookup_elem(&totals, &zero);
	__u32 index = bucket(now - since);

	if (all && now > since && index < LATENCY_BUCKETS)
		__sync_fetch_and_add(&all->latency[index], 1);
}

/* An atomic operation orders memory if its result is used; the compiler drops the rest of one whose
 * result is not. */
#define full_barrier(cell)                                                 \
	do {                                                                   \
		__typeof__(*(cell)) _was = __sync_fetch_and_or(cell, 0);           \
		asm volatile("" : : "r"(_was));                                    \
	} while (0)

/* Reads what the agent has decided since the last call. */
static __always_inline void take_decision(struct sock *sk, struct state *st)
{
	struct decision *slot = bpf_map_lookup_elem(&decisions, &st->slot);
	struct tcp_sock *tp = tcp_sk(sk);
	struct decision taken;
	__u64 sequence, now;

	if (!slot)
		return;
	sequence = *(volatile __u64 *)&slot->sequence;
	if (sequence == st->sequence || sequence & 1)
		return;
	full_barrier(&slot->barrier);
	taken = *(volatile struct decision *)slot;
	full_barrier(&slot->barrier);
	if (*(volatile __u64 *)&slot->sequence != sequence)
		return; /* being written: the next acknowledgement reads it */
	st->sequence = sequence;
	now = bpf_ktime_get_ns();
	if (taken.generation != st->generation)
		return;
	if (st->asked && taken.number >= st->asked) {
		st->asked = taken.number < st->number ? st->number : 0;
		st->asked_at = st->newest_at;
	}
	/* The first record is made a round trip before the first acknowledgement. */
	if (taken.number > st->answered && taken.number > 1)
		note_latency(taken.sampled_at, now);
	st->answered = taken.number;
	if (taken.flags & DECISION_FELL_BACK && !st->fell_back)
		count(policy_fallbacks);
	st->fell_back = taken.flags & DECISION_FELL_BACK;
	if (taken.verdict > VERDICT_GROW) {
		st->invalid++;
		count(invalid);
		if (st->mode == FLOW_AGENT)
			fall_back(sk, st);
		if (taken.verdict == VERDICT_ABANDON) {
			st->mode = FLOW_ABANDONED;
			show(sk, st, now);
		}
		return;
	}
	st->decisions++;
	count(decisions);
	st->mode = FLOW_AGENT;
	st->cwnd = max_u32(taken.cwnd, 1);
	st->growing = taken.verdict == VERDICT_GROW;
	st->base = taken.base;
	st->pacing = taken.pacing;
	tp->snd_ssthresh = max_u32(taken.ssthresh, 2);
}

/* RFC 9937 section 6 towards `target` packets, as tcp_cwnd_reduction: below it a packet more than was delivered leaves
 * only on an acknowledgement that is `safe`. With cong_control the kernel leaves it to us. */
static __always_inline void reduce(struct tcp_sock *tp, struct state *st, __u32 target, __u32 acked,
				   bool safe)
{
	__u32 inflight = packets_in_flight(tp);
	__u32 send = 0;

	st->prr_delivered += acked;
	if (inflight > target) {
		__u64 due = (__u64)target * st->prr_delivered + st->recover_fs - 1;

		due /= max_u32(st->recover_fs, 1);
		if (due > tp->prr_out)
			send = due - tp->prr_out;
	} else {
		__u32 limit = acked;

		if (st->prr_delivered > tp->prr_out)
			limit = max_u32(limit, st->prr_delivered - tp->prr_out);
		send = min_u32(target - inflight, limit + safe);
	}
	/* The first retransmission is not subject to the bound. */
	if (!tp->prr_out)
		send = max_u32(send, 1);
	set_cwnd(tp, inflight + send);
}

/* What the controller decided or, while it is in slow start, would decide by now. Else a flow whose
 * acknowledgements come in a bunch would learn of the first one's effect a round trip later. */
static __always_inline __u32 allowed(struct tcp_sock *tp, const struct state *st)
{
	__u32 since = st->delivered - st->held - st->base;

	if (!st->growing || !cwnd_limited(tp))
		return st->cwnd;
	return max_u32(st->cwnd, min_u32(st->cwnd + since, tp->snd_ssthresh));
}

static __always_inline void obey(struct sock *sk, struct state *st, __u32 acked, bool safe)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 cwnd = tp->snd_cwnd;
	bool answered = st->answered >= st->gap;

	if (reducing(ca_state(sk)) && !(answered && st->pacing != PACING_NONE)) {
		/* Until the controller answers the loss, the first retransmission and nothing else: what
		 * the window before it allows would meet the same full queue. One with a rate of its own then
		 * bounds itself, as Linux has it with cong_control. */
		reduce(tp, st, answered ? st->cwnd : 0, acked, safe);
	} else if (st->answered < st->timeout) {
		/* The kernel has restarted the window; the one decided before is void. */
		set_cwnd(tp, min_u32(cwnd + acked, max_u32(st->cwnd, cwnd)));
	} else if (st->answered < st->spurious) {
		set_cwnd(tp, cwnd); /* as the kernel restored it */
	} else if (st->answered < st->idle) {
		set_cwnd(tp, min_u32(cwnd, RESTART_WINDOW));
	} else {
		/* Up no faster than three packets for one delivered, so that a decision for many
		 * acknowledgements does not leave as one burst. */
		set_cwnd(tp, min_u32(allowed(tp, st), cwnd + 2 * acked));
	}
	set_pacing(sk, st, st->pacing);
}

/* What CUBIC learns of an acknowledgement. `pkts_acked`, which the kernel would call just before, has the
 * same sample. */
static __always_inline void cubic_sample(struct sock *sk, const struct rate_sample *rs)
{
	struct ack_sample sample = { .pkts_acked = rs->acked_sacked, .rtt_us = rs->rtt_us };

	sample.in_flight = packets_in_flight(tcp_sk(sk));
	cubictcp_acked(sk, &sample);
}

static __always_inline void cubic(struct sock *sk, struct state *st, const struct rate_sample *rs,
				  bool advanced)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 acked = rs->acked_sacked;

	cubic_sample(sk, rs);
	if (reducing(ca_state(sk)))
		reduce(tp, st, tp->snd_ssthresh, acked, advanced && !rs->losses);
	else if (advanced && acked)
		cubictcp_cong_avoid(sk, tp->snd_una, acked);
	if (tp->snd_cwnd < 2 && ca_state(sk) != CA_LOSS)
		set_cwnd(tp, 2);
	set_pacing(sk, st, PACING_NONE);
}

/* For a socket that the kernel had no memory to keep a state for. */
static __always_inline void cubic_without_state(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 after_reduction = max_u32(tp->snd_ssthresh, packets_in_flight(tp) + 1);
	__u32 acked = rs->acked_sacked;

	cubic_sample(sk, rs);
	if (reducing(ca_state(sk)))
		set_cwnd(tp, min_u32(tp->snd_cwnd, after_reduction));
	else if (acked)
		cubictcp_cong_avoid(sk, tp->snd_una, acked);
	sk->sk_pacing_rate = usual_pacing(tp);
}

static __always_inline bool unanswered(const struct tcp_sock *tp, const struct state *st,
				       const struct settings *set, __u64 now)
{
	__u64 patience = 4 * sample_interval(tp, st, set);

	if (patience < set->watchdog)
		patience = set->watchdog;
	/* A record of this acknowledgement's own loss is younger than `now`. */
	return st->asked && (__s64)(now - st->asked_at) > (__s64)patience;
}
