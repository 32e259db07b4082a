/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots, for which flows compete: whose they are, and who loses one when none is free. A slot belongs to the flow whose
 * generation it has; to raise that by compare and swap is to take it. */
#pragma once

#include "inside.h"

/* A flow that tells nothing for so long gives its slot to one that has none. */
#define IDLE_SLOT (10 * SECOND)
/* A flow without a slot asks for one so often at most, and looks at so many. */
#define ASK_AGAIN SECOND
#define LOOK_AT 8

static __always_inline bool has_slot(const struct state *st)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &st->slot);

	return flow && flow->generation == st->generation;
}

static __always_inline __u32 *share_of(__u32 user)
{
	__u32 key = user % SHARES;

	return bpf_map_lookup_elem(&shares, &key);
}

static __always_inline void add_share(__u32 user, __s32 more)
{
	__u32 *share = share_of(user);

	if (share)
		__sync_fetch_and_add(share, more);
}

/* Takes the slot from the flow of this generation; false if that has it no more. */
static __always_inline bool take_from(struct flow *flow, __u32 generation)
{
	__u32 user = flow->owner;

	if (__sync_val_compare_and_swap(&flow->generation, generation, generation + 1) != generation)
		return false;
	add_share(user, -1);
	count(closed);
	return true;
}

/* Whether `flow` gives way to a flow of a user who has `share` slots: it is idle, or its own user has at least two more. */
static __always_inline bool gives_way(const struct flow *flow, __u32 share, __u64 now)
{
	__u32 *own = share_of(flow->owner);

	return (__s64)(now - flow->updated_at) > (__s64)IDLE_SLOT || (own && *own >= share + 2);
}

/* A slot of another flow for one of `user`; NO_SLOT: none gives way among those looked at. */
static __noinline __u32 slot_of_another(__u32 user, __u64 now)
{
	__u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	__u32 *at = bpf_map_lookup_elem(&hand, &zero), *share = share_of(user);

	if (!set || !set->slots || !at || !share)
		return NO_SLOT;
	for (int looked = 0; looked < LOOK_AT; looked++) {
		__u32 slot = __sync_fetch_and_add(at, 1) % set->slots;
		struct flow *flow = bpf_map_lookup_elem(&flows, &slot);
		__u32 generation;

		if (!flow)
			return NO_SLOT;
		generation = *(volatile __u32 *)&flow->generation;
		if (flow->state == FLOW_FREE || !gives_way(flow, *share, now) || !take_from(flow, generation))
			continue;
		count(reassigned);
		return slot;
	}
	return NO_SLOT;
}

/* Another flow has the slot now: CUBIC until this one gets another. */
static __always_inline void lose_slot(struct sock *sk, struct state *st, __u64 now)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (st->mode == FLOW_AGENT) {
		cubictcp_init(sk);
		if (tp->snd_ssthresh >= SSTHRESH_INFINITE && tp->lost)
			tp->snd_ssthresh = max_u32(tp->snd_cwnd, 2);
	}
	set_pacing(sk, st, PACING_NONE);
	st->mode = FLOW_ABANDONED;
	st->slot = NO_SLOT;
	st->asked = 0;
	st->pending = 0;
	st->fell_back = 0;
	st->next_sample = now + ASK_AGAIN;
}
