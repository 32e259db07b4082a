/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What goes up. */
#pragma once

#include "slots.h"

/* Shows the flow to whoever reads the table. */
static __always_inline void show(struct sock *sk, struct state *st, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *flow = bpf_map_lookup_elem(&flows, &st->slot);

	if (!flow || flow->generation != st->generation)
		return;
	flow->updated_at = now;
	flow->state = st->mode;
	flow->srtt_us = tp->srtt_us >> 3;
	flow->min_rtt_us = st->min_rtt_us;
	flow->cwnd = tp->snd_cwnd;
	flow->ssthresh = tp->snd_ssthresh;
	flow->inflight = packets_in_flight(tp);
	flow->pacing = sk->sk_pacing_status == SK_PACING_NONE ? PACING_NONE : sk->sk_pacing_rate;
	flow->samples = st->samples;
	flow->decisions = st->decisions;
	flow->fallbacks = st->fallbacks;
	flow->refused = st->refused;
	flow->invalid = st->invalid;
	flow->delivered = st->delivered;
	flow->delivered_ce = tp->delivered_ce;
	flow->held = st->held;
	flow->lost = lost_packets(tp, st);
	flow->fell_back = st->fell_back;
}

/* What the kernel has undone asks for no answer; a record of it that the ring refused is not sent any more. */
static __always_inline void forget_loss(struct state *st)
{
	st->spurious = st->number;
	st->gap = st->timeout = 0;
	st->pending &= ~(1 << RECORD_TIMEOUT | 1 << RECORD_GAP);
}

/* Sends a record up. One that the ring refuses still waits for its answer, so that a full ring ends
 * like an absent agent. */
static __noinline int tell(struct sock *sk, __u32 kind)
{
	struct state *st = state_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct record *record;

	if (!st || !set || st->mode == FLOW_ABANDONED)
		return 0;
	if (!has_slot(st)) {
		lose_slot(sk, st, now);
		return 0;
	}
	st->number++;
	if (!st->asked) {
		st->asked = st->number;
		st->asked_at = now;
	}
	st->newest_at = now;
	st->next_sample = now + sample_interval(tp, st, set);
	if (kind == RECORD_TIMEOUT)
		st->timeout = st->number;
	else if (kind == RECORD_GAP || kind == RECORD_MARK)
		st->gap = st->number;
	else if (kind == RECORD_IDLE)
		st->idle = st->number;
	else if (kind == RECORD_SPURIOUS)
		forget_loss(st);
	if (in_kernel) {
		tell_inside(sk, st, now, kind);
		return 0;
	}
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		st->pending |= 1 << kind;
		st->refused++;
		count(refused);
		show(sk, st, now);
		return 0;
	}
	st->pending &= ~(1 << kind);
	st->samples++;
	record->kind = kind;
	record->slot = st->slot;
	record->generation = st->generation;
	record->flags = (st->app_limited ? FLAG_APP_LIMITED : 0) |
			(st->cwnd_limited ? FLAG_CWND_LIMITED : 0) |
			(ca_state(sk) >= CA_RECOVERY ? FLAG_REPAIRING : 0) |
			(kind == RECORD_TIMEOUT && st->again ? FLAG_ANSWERED : 0);
	record->number = st->number;
	record->now = now;
	record->sent_at = tp->first_tx_mstamp * NSEC_PER_USEC;
	record->rtt_us = st->rtt_us;
	record->rtt_max_us = st->rtt_max_us;
	record->srtt_us = tp->srtt_us >> 3;
	record->min_rtt_us = st->min_rtt_us;
	record->delivered = st->delivered;
	record->delivered_ce = tp->delivered_ce;
	record->held = st->held;
	record->lost = lost_packets(tp, st);
	record->inflight = packets_in_flight(tp);
	record->newest = st->newest;
	record->flight = st->flight;
	record->rate_delivered = st->rate_delivered;
	record->rate_interval_us = st->rate_interval_us;
	record->decisions = st->decisions;
	record->fallbacks = st->fallbacks;
	record->refused = st->refused;
	record->invalid = st->invalid;
	record->rtt_min_us = st->rtt_min_us;
	bpf_ringbuf_submit(record, 0);
	count(samples);
	st->rtt_us = 0;
	st->rtt_max_us = 0;
	st->rtt_min_us = 0;
	st->cwnd_limited = 0;
	st->reported = st->delivered + lost_packets(tp, st);
	show(sk, st, now);
	return 0;
}

static __noinline int tell_pending(struct sock *sk)
{
	struct state *st = state_of(sk);

	if (!st)
		return 0;
	/* Of a loss that is pending beside it, it does not tell: that came later. */
	if (st->pending & (1 << RECORD_SPURIOUS))
		tell(sk, RECORD_SPURIOUS);
	else if (st->pending & (1 << RECORD_TIMEOUT))
		tell(sk, RECORD_TIMEOUT);
	else if (st->pending & (1 << RECORD_GAP))
		tell(sk, RECORD_GAP);
	else if (st->pending & (1 << RECORD_MARK))
		tell(sk, RECORD_MARK);
	else
		tell(sk, RECORD_SAMPLE);
	return 0;
}
