/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A congestion control of the kernel's TCP whose window and rate are decided in user space. Every
 * acknowledgement is tallied here; now and then a record of the tally goes up through a ring, and
 * the decision comes down through an array. A flow whose records are not answered goes on under the
 * kernel's own CUBIC. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "govern.h"

char _license[] SEC("license") = "GPL";


/* RFC 4291 section 2.5.5.2. */
static __always_inline bool ipv4_mapped(const __u8 *address)
{
	for (int i = 0; i < 10; i++) {
		if (address[i])
			return false;
	}
	return address[10] == 0xff && address[11] == 0xff;
}

/* Which MPTCP connection the socket is a subflow of, if it is one. A kernel without MPTCP has neither the
 * member nor the type, and the verifier removes what asks for them. */
static __always_inline void describe_subflow(struct sock *sk, struct flow *flow)
{
	struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
	struct tcp_sock *tp = tcp_sk(sk);
	struct mptcp_subflow_context *subflow;

	flow->token = 0;
	flow->subflow = 0;
	if (!bpf_core_field_exists(tp->is_mptcp) ||
	    !bpf_core_type_exists(struct mptcp_subflow_context))
		return;
	if (!BPF_CORE_READ_BITFIELD(tp, is_mptcp) || !icsk->icsk_ulp_data)
		return;
	subflow = bpf_rdonly_cast(icsk->icsk_ulp_data,
				  bpf_core_type_id_kernel(struct mptcp_subflow_context));
	flow->token = subflow->token;
	if (bpf_core_field_exists(subflow->subflow_id))
		flow->subflow = subflow->subflow_id;
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
	describe_subflow(sk, flow);
}

/* Gives the flow a slot, if there is one for it, and opens it for its controller. */
static __noinline int take_slot(struct sock *sk)
{
	struct state *st = state_of(sk);
	__u64 now = bpf_ktime_get_ns();
	__u32 user = sk->sk_uid.val;
	struct flow *flow;

	if (!st)
		return 0;
	if (bpf_map_pop_elem(&free_slots, &st->slot))
		st->slot = slot_of_another(user, now);
	st->mode = FLOW_ABANDONED;
	st->next_sample = now + ASK_AGAIN;
	if (st->slot == NO_SLOT)
		return 0;
	flow = bpf_map_lookup_elem(&flows, &st->slot);
	if (!flow)
		return 0;
	/* CUBIC until the first decision, so that a flow never waits for an absent agent. */
	st->mode = FLOW_CUBIC;
	st->generation = __sync_fetch_and_add(&flow->generation, 1) + 1;
	flow->owner = user;
	add_share(user, 1);
	describe(sk, flow, now);
	count(opened);
	if (in_kernel && !begin_governing(sk, st, now))
		st->mode = FLOW_ABANDONED;
	show(sk, st, now);
	if (!in_kernel)
		tell(sk, RECORD_OPEN);
	return 0;
}

/* Gives the socket a state and, if there is one, a slot. */
static __noinline int adopt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	/* Memory may be short for the moment; the next acknowledgement asks again. */
	if (!st)
		return 0;
	st->delivered = tp->delivered;
	st->una = tp->snd_una;
	st->reported = tp->delivered + tp->lost;
	st->cwnd = tp->snd_cwnd;
	st->pacing = PACING_NONE;
	set_segments(sk, 0);
	take_slot(sk);
	if (st->slot == NO_SLOT)
		count(without_slot);
	return 0;
}

/* The decision that falls due with this acknowledgement, made here. */
static __always_inline void decide(struct sock *sk, struct state *st, const struct rate_sample *rs, __u64 now)
{
	enum decided decided;

	if (!govern(sk, st, rs, now, &decided)) {
		count(policy_fallbacks);
		st->fell_back = 1;
		fall_back(sk, st);
		st->mode = FLOW_ABANDONED;
	}
	if (decided != DECIDED_NOTHING) {
		st->decisions++;
		count(decisions);
		if (has_slot(st))
			show(sk, st, now);
		else
			lose_slot(sk, st, now);
	}
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st = state_of(sk);
	/* When TCP took the packet in hand, on the clock of bpf_ktime_get_ns: a call less. */
	__u64 now = tp->tcp_mstamp * NSEC_PER_USEC;
	__u32 zero = 0, acked = rs->acked_sacked;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	bool advanced;

	if (!st) {
		/* The acknowledgement of a SYN comes before `init`. */
		if (!BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_initialized))
			return;
		adopt(sk);
		st = state_of(sk);
	}
	if (!st || !set) {
		cubic_without_state(sk, rs);
		return;
	}
	if (st->slot == NO_SLOT && now >= st->next_sample)
		take_slot(sk);
	advanced = tp->snd_una != st->una;
	tally(tp, st, ca_state(sk));
	take_samples(tp, st, rs);
	if (in_kernel) {
		if (st->mode == FLOW_AGENT)
			decide(sk, st, rs, now);
	} else if (st->mode == FLOW_AGENT || st->mode == FLOW_CUBIC) {
		take_decision(sk, st);
		if (st->mode == FLOW_AGENT && unanswered(tp, st, set, now))
			fall_back(sk, st);
		if (newly_marked(st))
			tell(sk, RECORD_MARK);
		else if (now >= st->next_sample &&
			 (st->pending || st->delivered + lost_packets(tp, st) != st->reported))
			tell_pending(sk);
	}
	if (st->mode == FLOW_AGENT)
		obey(sk, st, acked, advanced && !rs->losses);
	else
		cubic(sk, st, rs, advanced);
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

SEC("struct_ops")
void BPF_PROG(init, struct sock *sk)
{
	cubictcp_init(sk);
	adopt(sk);
}

static __always_inline void give_slot_back(struct sock *sk, struct state *st)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &st->slot);

	if (!flow || flow->generation != st->generation)
		return;
	/* An abandoned flow's end is told too. */
	st->mode = FLOW_CUBIC;
	tell(sk, RECORD_CLOSE);
	if (st->slot == NO_SLOT || !take_from(flow, st->generation))
		return;
	flow->state = FLOW_FREE;
	bpf_map_push_elem(&free_slots, &st->slot, 0);
}

SEC("struct_ops")
void BPF_PROG(release, struct sock *sk)
{
	struct state *st = state_of(sk);

	if (!st)
		return;
	/* The next congestion control finds the socket as the application left it. */
	end_pacing(sk, st);
	if (st->slot != NO_SLOT)
		give_slot_back(sk, st);
	if (in_kernel)
		bpf_sk_storage_delete(&governed_flows, sk);
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

/* The kernel enters CWR for an echoed mark, for a packet that its own device's queue refused, and for a loss that
 * a probe repaired, and does not say which. The last it leaves in the same step (tcp_process_tlp_ack). */
static __always_inline __u32 explain(const struct tcp_sock *tp, struct state *st, __u8 new_state)
{
	bool repaired = new_state < CA_CWR && st->unexplained == tp->tcp_mstamp;

	st->unexplained = 0;
	st->probed += repaired;
	return repaired ? RECORD_GAP : RECORD_MARK;
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
	if (st->unexplained)
		tell(sk, explain(tp, st, new_state));
	if (new_state == CA_LOSS) {
		/* A packet that times out again does not change FlightSize (RFC 5681 equation 4), nor does a time-out of
		 * what a reduction answers for (tcp_enter_loss). */
		bool answered = reducing(old_state) && (__s32)(tp->snd_una - tp->high_seq) < 0;

		st->again = answered || tp->inet_conn.icsk_retransmits;
		if (!st->again)
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
		if (new_state == CA_CWR)
			st->unexplained = tp->tcp_mstamp;
		else
			tell(sk, RECORD_GAP);
	}
	/* RACK's timer comes here without an acknowledgement: one packet, as tcp_cwnd_reduction. */
	if (new_state == CA_RECOVERY)
		set_cwnd(tp, packets_in_flight(tp) + 1);
}

/* Since the flow sent last. */
static __always_inline __s32 idle_jiffies(const struct tcp_sock *tp)
{
	return (__u32)bpf_jiffies64() - tp->lsndtime;
}

/* Whether the first packet after a pause longer than the time-out is about to leave, and the
 * administrator wants the window to restart then. */
static __always_inline bool idled(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_slow_start_after_idle &&
	       tp->bytes_sent && !tp->packets_out && idle_jiffies(tp) > (__s32)tp->inet_conn.icsk_rto;
}

/* The first packet leaves with nothing in flight; whether CUBIC is to know. */
static __always_inline bool begins_to_send(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct state *st;

	/* Within a tick of the packet before: nothing to do for CUBIC, either. */
	if (idle_jiffies(tp) <= 0)
		return false;
	st = state_of(sk);
	/* RFC 5681 section 4.1. As tcp_slow_start_after_idle_check, which leaves it to us. */
	if (st && idled(sk)) {
		set_cwnd(tp, min_u32(tp->snd_cwnd, RESTART_WINDOW));
		tell(sk, RECORD_IDLE);
	}
	return !st || st->mode != FLOW_AGENT;
}

SEC("struct_ops")
void BPF_PROG(cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	/* CUBIC has nothing to do at other events. */
	if (event == CA_EVENT_TX_START && begins_to_send(sk))
		cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
void BPF_PROG(tx_start, struct sock *sk)
{
	if (begins_to_send(sk))
		cubictcp_cwnd_event_tx_start(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(undo_cwnd, struct sock *sk)
{
	/* Once for each answer to a loss that the kernel takes back: by F-RTO or timestamps, of a recovery, by duplicates
	 * reported (tcp_undo_cwnd_reduction). The window is that from before until the controller answers. */
	tell(sk, RECORD_SPURIOUS);
	return tcp_reno_undo_cwnd(sk);
}

/* Absent where no controller sets a rate. */
SEC("struct_ops")
__u32 BPF_PROG(min_tso_segs, struct sock *sk)
{
	__u64 packets = ((struct inet_connection_sock *)sk)->icsk_ca_priv[SEGMENTS_WORD];

	return packets ? packets : sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_min_tso_segs;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops ackademy = {
	.init = (void *)init,
	.release = (void *)release,
	.ssthresh = (void *)ssthresh,
	.set_state = (void *)set_state,
	.cwnd_event = (void *)cwnd_event,
	.cwnd_event_tx_start = (void *)tx_start,
	.undo_cwnd = (void *)undo_cwnd,
	.min_tso_segs = (void *)min_tso_segs,
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
	.undo_cwnd = (void *)undo_cwnd,
	.min_tso_segs = (void *)min_tso_segs,
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
