/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Contention: own_queue/contention.rs of the core, in fixed point. */
#pragma once

#include "sense.h"

#define PACKET Q16_ONE
#define TARGET_PPS 833
#define MINUTE (60 * SECOND)
/* A sign of contention: a queue of so many times the usual one, for so long and in so many intervals; and how long it
 * holds. */
#define SIGN_LONG 3
#define SIGN_STAYS SECOND
#define SIGN_STAYS_INTERVALS 10
#define SIGN_HOLDS (10 * SECOND)
#define SIGN_HOLDS_INTERVALS 100

/* How many own packets there should be in the queue at this rate, without actions. */
static __always_inline s64 plain_target(const struct tables *tables, const struct policy *policy, u64 rate)
{
	u64 root = square_root(tables, (rate << 16) / TARGET_PPS);

	return max_u64(policy->target * root >> 16, PACKET);
}

/* Queueing delay that the target makes at this rate, which is at least 1. */
static __always_inline u64 usual_queue(const struct tables *tables, const struct policy *policy, u64 rate)
{
	return (u64)plain_target(tables, policy, rate) * SECOND / rate;
}

/* As Contention::stays_long. */
static __always_inline bool stays_long(struct law *law, u64 now, bool is_long)
{
	if (!is_long) {
		law->long_intervals = 0;
		return false;
	}
	if (!law->long_intervals++)
		law->long_since = now;
	return law->long_intervals >= SIGN_STAYS_INTERVALS && less(now, law->long_since) >= SIGN_STAYS;
}

/* As Contention::on_interval. */
static __always_inline bool is_contended(struct law *law, u64 now, bool is_long)
{
	if (stays_long(law, now, is_long)) {
		law->sign_at = now;
		law->sign_age = 0;
		return true;
	}
	law->sign_age++;
	return law->sign_at && (less(now, law->sign_at) <= SIGN_HOLDS || law->sign_age <= SIGN_HOLDS_INTERVALS);
}
