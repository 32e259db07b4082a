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
/* It lapses without a loss or mark for so long, at most counted as so many ms, and for four of CUBIC's periods, of which the
 * third power of one in seconds is 3/4 of the window. */
#define QUIET (20 * SECOND)
#define QUIET_MS_MOST 1000000
#define QUIET_MS_CUBED_PER_PACKET 48000000000ULL

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

/* As Contention::has_sign. */
static __always_inline bool has_sign(struct law *law, u64 now, bool is_long)
{
	if (stays_long(law, now, is_long)) {
		law->sign_at = now;
		law->sign_age = 0;
		return true;
	}
	law->sign_age++;
	return law->sign_at && (less(now, law->sign_at) <= SIGN_HOLDS || law->sign_age <= SIGN_HOLDS_INTERVALS);
}

/* Whether there was no loss or mark for so long that those who keep the queue long are of this kind. */
static __always_inline bool is_quiet(const struct law *law, u64 now)
{
	u64 quiet = less(now, law->quiet_since), ms = min_u64(quiet / 1000000, QUIET_MS_MOST);

	return quiet > QUIET && ms * ms * ms > QUIET_MS_CUBED_PER_PACKET / 256 * ((u64)law->cwnd >> 8);
}

/* As Contention::on_interval. */
static __always_inline bool is_contended(struct law *law, const struct interval *last, u64 queue, bool is_long)
{
	bool is_reduced = last->lost || last->marked;

	if (law->lapsed && !is_reduced && 2 * queue <= 3 * (law->lapsed - 1))
		return false;
	law->lapsed = 0;
	if (!has_sign(law, last->now, is_long)) {
		law->quiet_since = 0;
		return false;
	}
	if (!law->quiet_since || is_reduced)
		law->quiet_since = last->now;
	if (!is_quiet(law, last->now))
		return true;
	law->lapsed = queue + 1;
	law->quiet_since = law->sign_at = 0;
	law->sign_age = law->long_intervals = 0;
	return false;
}
