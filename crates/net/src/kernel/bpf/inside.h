/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flows whose decisions are made here, on the acknowledgement. */
#pragma once

#include "decide.h"
#include "socket.h"

static __always_inline struct governed *governed_of(struct sock *sk)
{
	return bpf_sk_storage_get(&governed_flows, sk, 0, 0);
}

/* The law's window and rate, for `obey`. */
static __always_inline void follow(const struct tcp_sock *tp, struct state *st, const struct governed *own)
{
	st->cwnd = max_u32(law_window(&own->law) >> 16, 1);
	/* Payload; a packet per Q16. */
	st->pacing = max_u64(law_rate(&own->law) * tp->mss_cache >> 16, 1);
	st->answered = st->number;
	st->asked = 0;
	st->growing = 0;
}

/* Puts a socket under the law; false if there is no memory for it. */
static __always_inline bool begin_governing(struct sock *sk, struct state *st, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct governed *own = bpf_sk_storage_get(&governed_flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!own)
		return false;
	start_governed(own, tp->snd_cwnd, tp->snd_ssthresh, now, now ^ st->generation);
	own->delivered = st->delivered;
	own->held = st->held;
	own->lost = lost_packets(tp, st);
	st->mode = FLOW_AGENT;
	follow(tp, st, own);
	return true;
}

/* Tells signals and law of what was lost since the last call. */
static __always_inline void take_losses(u32 lost, struct governed *own, const struct tables *all, u64 now,
					enum loss kind)
{
	u32 newly = lost - own->lost;

	own->lost = lost;
	/* A gap of no packets is a mark; nothing else is told as one. */
	on_loss(own, all, newly, now, kind == LOSS_GAP && !newly ? LOSS_MORE : kind);
}

static __always_inline void take_mark(struct governed *own, const struct tables *all, u64 now)
{
	on_loss(own, all, 0, now, LOSS_GAP);
}

/* What a record would tell, at once. */
static __always_inline void tell_inside(struct sock *sk, struct state *st, __u64 now, __u32 kind)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct governed *own = governed_of(sk);
	__u32 zero = 0;
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);

	if (!own || !all || st->mode != FLOW_AGENT)
		return;
	if (kind == RECORD_GAP)
		take_losses(lost_packets(tp, st), own, all, now, LOSS_GAP);
	if (kind == RECORD_TIMEOUT)
		take_losses(lost_packets(tp, st), own, all, now, st->again ? LOSS_TIMEOUT_AGAIN : LOSS_TIMEOUT);
	if (kind == RECORD_MARK)
		take_mark(own, all, now);
	if (kind == RECORD_IDLE)
		on_loss(own, all, 0, now, LOSS_IDLE);
	if (kind == RECORD_SPURIOUS)
		on_loss(own, all, 0, now, LOSS_SPURIOUS);
	follow(tp, st, own);
}

/* Decides if a decision falls due with this acknowledgement; false if it is none that a sender can obey. */
static __always_inline bool govern(struct sock *sk, struct state *st, const struct rate_sample *rs, __u64 now,
				   enum decided *decided)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct governed *own = governed_of(sk);
	struct delivery ack = { .now = now, .sent_at = tp->first_tx_mstamp * NSEC_PER_USEC };
	__u32 zero = 0, held;
	struct network *net = bpf_map_lookup_elem(&network, &zero);
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);
	struct policy *rules = bpf_map_lookup_elem(&policy, &zero);

	*decided = DECIDED_NOTHING;
	if (!own || !net || !all || !rules)
		return false;
	ack.acked = st->delivered - own->delivered;
	held = st->held - own->held;
	own->delivered = st->delivered;
	own->held = st->held;
	if (ack.acked) {
		ack.found = packets_in_flight(tp) + ack.acked;
		ack.app_limited = st->app_limited;
		ack.growing = !held && cwnd_limited(tp);
		if (rs->rtt_us > 0 && !rs->is_retrans)
			ack.rtt = rs->rtt_us * NSEC_PER_USEC;
		ack.min_rtt = st->min_rtt_us * NSEC_PER_USEC;
		if (st->rate_interval_us)
			ack.rate = ((u64)st->rate_delivered << 16) * 1000000 / st->rate_interval_us;
		*decided = on_delivery(own, &ack, net, all, rules);
	}
	if (lost_packets(tp, st) != own->lost)
		take_losses(lost_packets(tp, st), own, all, now, LOSS_MORE);
	if (newly_marked(st))
		take_mark(own, all, now);
	follow(tp, st, own);
	return *decided != DECIDED_INVALID;
}
