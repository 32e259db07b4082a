/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The decision of a monitor interval: signals, network and law, one after the other. */
#pragma once

#include "law.h"
#include "network.h"

static __always_inline void start_governed(struct governed *own, u32 initial, u32 ssthresh, u64 now, u64 seed)
{
	start_signals(&own->signals, now);
	start_law(&own->law, initial, ssthresh, now, seed);
}

/* An RFC 6298 average, in which an acknowledgement counts as one of each two packets. */
static __always_inline void smooth(struct governed *own, const struct tables *tables, u64 rtt, u32 acked)
{
	u32 samples = acked / 2;

	if (!rtt)
		return;
	if (!own->srtt) {
		own->srtt = rtt;
		return;
	}
	samples = samples < 1 ? 1 : samples > 64 ? 64 : samples;
	own->srtt = rtt + (divide(((s64)own->srtt - (s64)rtt) * (tables->decay[samples] >> 14), Q16_ONE));
}

/* Of the latest 32 intervals. */
#define OUTSIDE_MOST 16

static __always_inline u32 bits_of(u32 value)
{
	value -= value >> 1 & 0x55555555;
	value = (value & 0x33333333) + (value >> 2 & 0x33333333);
	return ((value + (value >> 4) & 0x0f0f0f0f) * 0x01010101) >> 24;
}

/* Asks the network for the action unless it is `calm`; false where it has none that is valid. */
static __always_inline bool act(struct governed *own, const struct network *net, const struct tables *tables,
				const struct policy *policy, bool calm)
{
	const struct values *result;
	s32 first, second;

	/* The law decides without contention, and, as with Guard of the core, where most of the latest intervals are unlike
	 * training. */
	if (calm || (policy->guarded && bits_of(own->outside) > OUTSIDE_MOST)) {
		own->action[0] = own->action[1] = 0;
		return true;
	}
	result = run_network(net, tables, &own->evaluation);
	if (!result)
		return false;
	first = result->of[0];
	second = result->of[1];
	if (first > policy->limit || first < -policy->limit || second > policy->limit || second < -policy->limit)
		return false;
	own->action[0] = clamp_s64(first, -Q14_ONE, Q14_ONE);
	own->action[1] = clamp_s64(second, -Q14_ONE, Q14_ONE);
	if (policy->guarded && is_misled_by_jitter(&own->signals.last, own->action[0], own->action[1]))
		own->action[0] = own->action[1] = 0;
	return true;
}

/* Packets were lost, or the sender has taken another step that signals and law follow: as LossKind of the core. */
static __always_inline void on_loss(struct governed *own, const struct tables *tables, u32 packets, u64 now,
				    enum loss kind)
{
	if (kind == LOSS_IDLE) {
		law_idle(&own->law);
		return;
	}
	if (kind == LOSS_SPURIOUS) {
		sense_spurious(&own->signals);
		law_spurious(&own->law, now);
		return;
	}
	sense_loss(&own->signals, packets, kind);
	if (kind == LOSS_TIMEOUT || kind == LOSS_TIMEOUT_AGAIN)
		law_timeout(&own->law, kind == LOSS_TIMEOUT_AGAIN);
	else if (packets)
		law_loss(&own->law, tables, packets, now);
}

enum decided {
	DECIDED_NOTHING, /* the interval has not ended */
	DECIDED,
	DECIDED_INVALID,
};

/* Takes an acknowledgement, and makes the decision that falls due with it. */
static __always_inline enum decided on_delivery(struct governed *own, struct delivery *ack,
						const struct network *net, const struct tables *tables,
						const struct policy *policy)
{
	bool calm;

	smooth(own, tables, ack->rtt, ack->acked);
	ack->srtt = own->srtt;
	sense_delivery(&own->signals, ack);
	law_delivery(&own->law, ack, tables, policy);
	if (ack->now < own->end || !own->srtt)
		return DECIDED_NOTHING;
	own->end = ack->now + max_u64(own->srtt, INTERVAL_SHORTEST);
	end_interval(&own->signals, tables, ack->now);
	own->decisions++;
	calm = policy->contended && !update_contention(&own->law, &own->signals.last, tables, policy);
	if (policy->width) {
		push_features(own, tables, policy);
		if (!act(own, net, tables, policy, calm))
			return DECIDED_INVALID;
	}
	law_interval(&own->law, &own->signals.last, tables, policy, own);
	return DECIDED;
}
