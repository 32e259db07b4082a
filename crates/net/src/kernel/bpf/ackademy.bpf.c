/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A congestion control of the kernel's TCP whose window and rate are decided in user space. Every
 * acknowledgement is tallied here; now and then a record of the tally goes up through a ring, and
 * the decision comes down through an array. A flow whose records are not answered goes on under the
 * kernel's own CUBIC. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "abi.h"
#include "kernel.h"

char _license[] SEC("license") = "GPL";

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define PACING_NONE (~0ULL)
/* Samples per smoothed round trip, as a shift: while the window doubles in one, and later. */
#define SLOW_START_SHIFT 4
#define AVOIDANCE_SHIFT 1
/* Shortest time between the samples of a flow, unless the settings ask for less. */
#define INTERVAL_MIN NSEC_PER_MSEC
/* RFC 6928: what an idle flow starts again with until its controller answers. */
#define RESTART_WINDOW 10
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
	__u32 cwnd_limited;
	__u32 reported; /* delivered and lost, as last told */
	__u32 app_limited;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 flight;
	__u64 next_sample;
	/* Questions. */
	__u64 number; /* of the newest record */
	__u64 asked; /* number of the oldest record without answer; 0: none */
	__u64 asked_at;
	__u64 newest_at;
	__u64 timeout; /* number of the last time-out's record */
	__u64 gap; /* number of the record of the last episode's beginning */
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
	/* Proportional rate reduction (RFC 6937). */
	__u32 prr_delivered;
	__u32 recover_fs;
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

#define count(member)                                                          \
	do {                                                                   \
		__u32 _zero = 0;                                               \
		struct totals *_totals = bpf_map_lookup_elem(&totals, &_zero); \
		if (_totals)                                                   \
			__sync_fetch_and_add(&_totals->member, 1);             \
	} while (0)

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

/* Pacing that the application or the fq queue has turned on stays on. */
static __always_inline void set_pacing(struct sock *sk, struct state *st, __u64 pacing)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u64 slowest = 10ULL * tp->mss_cache; /* a packet every 100 ms, should the agent be gone */

	if (pacing == PACING_NONE) {
		pacing = usual_pacing(tp);
		if (st->paced && sk->sk_pacing_status == SK_PACING_NEEDED)
			sk->sk_pacing_status = SK_PACING_NONE;
		st->paced = 0;
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
	if (rs->rtt_us > 0) {
		st->rtt_us = rs->rtt_us;
		st->rtt_max_us = max_u32(st->rtt_max_us, st->rtt_us);
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

static __always_inline __u64 sample_interval(const struct tcp_sock *tp, const struct settings *set)
{
	__u64 srtt = (tp->srtt_us >> 3) * NSEC_PER_USEC;
	bool slow_start = tp->snd_cwnd < tp->snd_ssthresh;
	__u64 interval = srtt >> (slow_start ? SLOW_START_SHIFT : AVOIDANCE_SHIFT);

	if (interval < INTERVAL_MIN)
		interval = INTERVAL_MIN;
	return interval < set->interval ? interval : set->interval;
}

/* Shows the flow to whoever reads the table. */
static __always_inline void show(struct sock *sk, struct state *st, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct flow *flow = bpf_map_lookup_elem(&flows, &st->slot);

	if (!flow)
		return;
	flow->state = st->mode;
	flow->updated_at = now;
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
	flow->lost = tp->lost;
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
	st->number++;
	if (!st->asked) {
		st->asked = st->number;
		st->asked_at = now;
	}
	st->newest_at = now;
	st->next_sample = now + sample_interval(tp, set);
	if (kind == RECORD_TIMEOUT)
		st->timeout = st->number;
	else if (kind == RECORD_GAP)
		st->gap = st->number;
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
			(st->cwnd_limited ? FLAG_CWND_LIMITED : 0);
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
	record->lost = tp->lost;
	record->inflight = packets_in_flight(tp);
	record->flight = st->flight;
	record->rate_delivered = st->rate_delivered;
	record->rate_interval_us = st->rate_interval_us;
	record->decisions = st->decisions;
	record->fallbacks = st->fallbacks;
	record->refused = st->refused;
	record->invalid = st->invalid;
	bpf_ringbuf_submit(record, 0);
	count(samples);
	st->rtt_us = 0;
	st->rtt_max_us = 0;
	st->cwnd_limited = 0;
	st->reported = st->delivered + tp->lost;
	show(sk, st, now);
	return 0;
}

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

/* Reads what the agent has decided since the last call. */
static __always_inline void take_decision(struct sock *sk, struct state *st, __u64 now)
{
	struct decision *slot = bpf_map_lookup_elem(&decisions, &st->slot);
	struct tcp_sock *tp = tcp_sk(sk);
	struct decision taken;
	__u64 sequence;

	if (!slot)
		return;
	sequence = *(volatile __u64 *)&slot->sequence;
	if (sequence == st->sequence || sequence & 1)
		return;
	/* An atomic operation that returns a value is a full barrier. */
	__sync_fetch_and_add(&slot->barrier, 0);
	taken = *(volatile struct decision *)slot;
	__sync_fetch_and_add(&slot->barrier, 0);
	if (*(volatile __u64 *)&slot->sequence != sequence)
		return; /* being written: the next acknowledgement reads it */
	st->sequence = sequence;
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

/* RFC 6937 section 3.1, slow start reduction bound, towards `target` packets. With cong_control the
 * kernel leaves it to us. */
static __always_inline void reduce(struct tcp_sock *tp, struct state *st, __u32 target, __u32 acked)
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
		send = min_u32(target - inflight, limit + 1);
	}
	/* The first retransmission is not subject to the bound (RFC 6937 section 3). */
	if (!tp->prr_out)
		send = max_u32(send, 1);
	set_cwnd(tp, inflight + send);
}

/* What the controller decided or, while it is in slow start, would decide by now. Else a flow whose
 * acknowledgements come in a bunch would hear of the first one's effect a round trip later. */
static __always_inline __u32 allowed(struct tcp_sock *tp, const struct state *st)
{
	__u32 since = st->delivered - st->held - st->base;

	if (!st->growing || !cwnd_limited(tp))
		return st->cwnd;
	return max_u32(st->cwnd, min_u32(st->cwnd + since, tp->snd_ssthresh));
}

static __always_inline void obey(struct sock *sk, struct state *st, __u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 cwnd = tp->snd_cwnd;

	if (reducing(ca_state(sk))) {
		/* Until the controller answers the loss, the first retransmission and nothing else: what
		 * the window before it allows would meet the same full queue. */
		reduce(tp, st, st->answered < st->gap ? 0 : st->cwnd, acked);
	} else if (st->answered < st->timeout) {
		/* The kernel has restarted the window; the one decided before is void. */
		set_cwnd(tp, min_u32(cwnd + acked, max_u32(st->cwnd, cwnd)));
	} else {
		/* Up no faster than three packets for one delivered, so that a decision for many
		 * acknowledgements does not leave as one burst. */
		set_cwnd(tp, min_u32(allowed(tp, st), cwnd + 2 * acked));
	}
	set_pacing(sk, st, st->pacing);
}

static __always_inline void cubic(struct sock *sk, struct state *st, __u32 acked, bool advanced)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (reducing(ca_state(sk)))
		reduce(tp, st, tp->snd_ssthresh, acked);
	else if (advanced && acked)
		cubictcp_cong_avoid(sk, tp->snd_una, acked);
	if (tp->snd_cwnd < 2 && ca_state(sk) != CA_LOSS)
		set_cwnd(tp, 2);
	set_pacing(sk, st, PACING_NONE);
}

static __always_inline bool unanswered(const struct tcp_sock *tp, const struct state *st,
				       const struct settings *set, __u64 now)
{
	__u64 patience = 4 * sample_interval(tp, set);

	if (patience < set->watchdog)
		patience = set->watchdog;
	return st->asked && now - st->asked_at > patience;
}

static __noinline int tell_pending(struct sock *sk)
{
	struct state *st = state_of(sk);

	if (!st)
		return 0;
	if (st->pending & (1 << RECORD_TIMEOUT))
		tell(sk, RECORD_TIMEOUT);
	else if (st->pending & (1 << RECORD_GAP))
		tell(sk, RECORD_GAP);
	else
		tell(sk, RECORD_SAMPLE);
	return 0;
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = state_of(sk);
	__u64 now = bpf_ktime_get_ns();
	__u32 zero = 0, acked = rs->acked_sacked;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	bool advanced;

	if (!st || !set)
		return;
	advanced = tp->snd_una != st->una;
	tally(tp, st, ca_state(sk));
	take_samples(tp, st, rs);
	if (st->mode == FLOW_AGENT || st->mode == FLOW_CUBIC) {
		take_decision(sk, st, now);
		if (st->mode == FLOW_AGENT && unanswered(tp, st, set, now))
			fall_back(sk, st);
		if (now >= st->next_sample &&
		    (st->pending || st->delivered + tp->lost != st->reported))
			tell_pending(sk);
	}
	if (st->mode == FLOW_AGENT)
		obey(sk, st, acked);
	else
		cubic(sk, st, acked, advanced);
}

SEC("struct_ops")
void BPF_PROG(cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

SEC("struct_ops")
void BPF_PROG(cong_control_v69, struct sock *sk, const struct rate_sample *rs)
{
	on_ack(sk, rs);
}

/* RFC 4291 section 2.5.5.2. */
static __always_inline bool ipv4_mapped(const __u8 *address)
{
	for (int i = 0; i < 10; i++) {
		if (address[i])
			return false;
	}
	return address[10] == 0xff && address[11] == 0xff;
}

static __always_inline void describe(struct sock *sk, struct flow *flow, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct sock_common *common = &sk->__sk_common;

	flow->family = common->skc_family;
	if (flow->family == AF_INET6) {
		bpf_core_read(flow->local, sizeof(flow->local), &common->skc_v6_rcv_saddr);
		bpf_core_read(flow->remote, sizeof(flow->remote), &common->skc_v6_daddr);
	}
	/* A socket of IPv6 that speaks IPv4 has the addresses of both. */
	if (flow->family != AF_INET6 || ipv4_mapped(flow->remote)) {
		__u32 local = common->skc_rcv_saddr, remote = common->skc_daddr;

		flow->family = AF_INET;
		__builtin_memset(flow->local, 0, sizeof(flow->local));
		__builtin_memset(flow->remote, 0, sizeof(flow->remote));
		__builtin_memcpy(flow->local, &local, 4);
		__builtin_memcpy(flow->remote, &remote, 4);
	}
	flow->header = tp->tcp_header_len + (flow->family == AF_INET6 ? 40 : 20);
	flow->local_port = common->skc_num;
	flow->remote_port = __builtin_bswap16(common->skc_dport);
	flow->netns = common->skc_net.net->ns.inum;
	flow->mss = tp->mss_cache;
	flow->initial_cwnd = tp->snd_cwnd;
	flow->initial_ssthresh = tp->snd_ssthresh;
	flow->opened_at = now;
}

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	struct flow *flow;

	cubictcp_init(sk);
	if (!st)
		return;
	/* CUBIC until the first decision, so that a flow never waits for an absent agent. */
	st->mode = FLOW_CUBIC;
	st->delivered = tp->delivered;
	st->una = tp->snd_una;
	st->reported = tp->delivered + tp->lost;
	st->cwnd = tp->snd_cwnd;
	st->pacing = PACING_NONE;
	if (bpf_map_pop_elem(&free_slots, &st->slot)) {
		st->slot = NO_SLOT;
		st->mode = FLOW_ABANDONED;
		count(without_slot);
		return;
	}
	flow = bpf_map_lookup_elem(&flows, &st->slot);
	if (!flow)
		return;
	st->generation = ++flow->generation;
	describe(sk, flow, bpf_ktime_get_ns());
	count(opened);
	show(sk, st, flow->opened_at);
	tell(sk, RECORD_OPEN);
}

SEC("struct_ops")
void BPF_PROG(release, struct sock *sk)
{
	struct state *st = state_of(sk);
	struct flow *flow;

	if (!st || st->slot == NO_SLOT)
		return;
	st->mode = st->mode == FLOW_ABANDONED ? FLOW_CUBIC : st->mode;
	tell(sk, RECORD_CLOSE);
	flow = bpf_map_lookup_elem(&flows, &st->slot);
	if (flow)
		flow->state = FLOW_FREE;
	count(closed);
	/* The next congestion control finds the socket as the application left it. */
	if (st->paced && sk->sk_pacing_status == SK_PACING_NEEDED)
		sk->sk_pacing_status = SK_PACING_NONE;
	bpf_map_push_elem(&free_slots, &st->slot, 0);
	bpf_sk_storage_delete(&sockets, sk);
}

SEC("struct_ops")
__u32 BPF_PROG(ssthresh, struct sock *sk)
{
	struct state *st = state_of(sk);

	/* The controller sets the threshold with its answer to the loss. */
	if (st && st->mode == FLOW_AGENT)
		return tcp_sk(sk)->snd_ssthresh;
	return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = state_of(sk);
	__u8 old_state = ca_state(sk);

	if (!st)
		return;
	if (st->mode != FLOW_AGENT)
		cubictcp_state(sk, new_state);
	tally(tp, st, new_state);
	if (new_state == CA_LOSS) {
		/* A packet that times out again does not change FlightSize (RFC 5681 equation 4). */
		if (!tp->inet_conn.icsk_retransmits)
			st->flight = tp->packets_out;
		tell(sk, RECORD_TIMEOUT);
		return;
	}
	/* As tcp_end_cwnd_reduction, which leaves it to us: a loss that a probe repaired ends with the
	 * acknowledgement that shows it. */
	if (st->mode != FLOW_AGENT && old_state == CA_CWR && new_state < CA_CWR)
		set_cwnd(tp, min_u32(tp->snd_cwnd, tp->snd_ssthresh));
	if (!reducing(new_state) || reducing(old_state))
		return;
	st->prr_delivered = 0;
	st->recover_fs = tp->packets_out;
	/* A loss after a time-out, before its repair is done, has been answered for. */
	if (old_state != CA_LOSS) {
		st->flight = tp->packets_out;
		tell(sk, RECORD_GAP);
	}
	/* RACK's timer comes here without an acknowledgement: one packet, as tcp_cwnd_reduction. */
	if (new_state == CA_RECOVERY)
		set_cwnd(tp, packets_in_flight(tp) + 1);
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = state_of(sk);
	__u32 idle;

	if (!st || st->mode != FLOW_AGENT) {
		cubictcp_cwnd_event(sk, event);
		return;
	}
	if (event != CA_EVENT_TX_START || !tp->bytes_sent || tp->packets_out)
		return;
	idle = (__u32)bpf_jiffies64() - tp->lsndtime;
	if ((__s32)idle <= (__s32)tp->inet_conn.icsk_rto)
		return;
	/* RFC 5681 section 4.1. */
	set_cwnd(tp, min_u32(tp->snd_cwnd, RESTART_WINDOW));
	tell(sk, RECORD_IDLE);
}

SEC("struct_ops")
void BPF_PROG(pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct state *st = state_of(sk);

	if (!st || st->mode != FLOW_AGENT)
		cubictcp_acked(sk, sample);
}

SEC("struct_ops")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	struct state *st = state_of(sk);

	/* A controller is not told that a loss was none; its window stands. */
	if (st && st->mode == FLOW_AGENT)
		return tcp_sk(sk)->snd_cwnd;
	return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops ackademy = {
	.init = (void *)init,
	.release = (void *)release,
	.ssthresh = (void *)ssthresh,
	.set_state = (void *)set_state,
	.cwnd_event = (void *)cwnd_event,
	.pkts_acked = (void *)pkts_acked,
	.undo_cwnd = (void *)undo_cwnd,
	.cong_control = (void *)cong_control,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ackademy",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops___v69 ackademy_v69 = {
	.init = (void *)init,
	.release = (void *)release,
	.ssthresh = (void *)ssthresh,
	.set_state = (void *)set_state,
	.cwnd_event = (void *)cwnd_event,
	.pkts_acked = (void *)pkts_acked,
	.undo_cwnd = (void *)undo_cwnd,
	.cong_control = (void *)cong_control_v69,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "ackademy",
};

/* Whose sockets `hand_back` takes, and what they get. */
const volatile char from_name[CA_NAME_MAX] = {};
const volatile char to_name[CA_NAME_MAX] = {};

/* Gives every socket under `from_name` of the caller's network namespace to `to_name`, and writes an
 * enum handed for each. Listening sockets too: what they accept starts with what they have. */
SEC("iter/tcp")
int hand_back(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	char name[CA_NAME_MAX] = {};
	__u8 handed;

	/* Not of a connection that is still or no more a full socket. */
	if (!common || !bpf_skc_to_tcp_sock(common))
		return 0;
	if (bpf_getsockopt(common, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	for (int i = 0; i < CA_NAME_MAX; i++) {
		if (name[i] != from_name[i])
			return 0;
		if (!name[i])
			break;
	}
	handed = common->skc_state == TCP_LISTEN ? HANDED_LISTENER : HANDED_FLOW;
	for (int i = 0; i < CA_NAME_MAX; i++)
		name[i] = to_name[i];
	if (bpf_setsockopt(common, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name)))
		handed = HANDED_NOTHING;
	bpf_seq_write(ctx->meta->seq, &handed, sizeof(handed));
	return 0;
}
