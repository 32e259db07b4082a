/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Competition and contention: own_queue/compete.rs and contention.rs of the core, in fixed point. */
#pragma once

#include "sense.h"

#define PACKET Q16_ONE
#define TARGET_PPS 833
#define MINUTE (60 * SECOND)
/* Of a queue that shows competition: times the usual one, for so many intervals; and again within so long. */
#define LONG 24
#define LONG_INTERVALS 20
#define LONG_AGAIN 4
#define LONG_AGAIN_INTERVALS 4
#define AGAIN (10 * SECOND)
/* A sign of contention: a queue of so many times the usual one, for so long and in so many intervals; and how long it
 * holds. */
#define SIGN_LONG 3
#define SIGN_STAYS SECOND
#define SIGN_STAYS_INTERVALS 10
#define SIGN_HOLDS (10 * SECOND)
#define SIGN_HOLDS_INTERVALS 100
/* Intervals whose losses are one event. */
#define EVENT 2
/* Growth of Reno's share per interval, Q16. */
#define RENO_GROWTH 34696
/* No distance from the curve's turn counts as more than so many seconds, Q16: its cube must fit. */
#define DISTANCE_MOST (1LL << 26)

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

/* As Law::update_contention. */
static __always_inline bool update_contention(struct law *law, const struct interval *last,
					      const struct tables *tables, const struct policy *policy)
{
	u64 base = law->base.length ? min_u64(smallest_of(&law->base), last->base) : last->base;
	u64 best = max_u64(max_u64(law->rate_max.value[0], last->delivery), Q16_ONE);
	bool is_long = less(last->rtt_min, base) > SIGN_LONG * usual_queue(tables, policy, best);

	if (stays_long(law, last->now, is_long)) {
		law->sign_at = last->now;
		law->sign_age = 0;
		return true;
	}
	law->sign_age++;
	return law->sign_at && (less(last->now, law->sign_at) <= SIGN_HOLDS || law->sign_age <= SIGN_HOLDS_INTERVALS);
}

static __always_inline void end_competition(struct law *law)
{
	law->competing = law->suspicious = 0;
}

/* As Competition::on_drain. */
static __always_inline void compare_drain(struct law *law, const struct interval *last)
{
	u64 base = law->base.length ? smallest_of(&law->base) : last->base;

	law->drained = 0;
	if (less(law->drain_least, base) <= less(law->drain_before, base) / 5)
		end_competition(law);
}

/* CUBIC's window at this time after the reduction: before + 0.4 (t - k)^3, where k^3 = before * 0.3 / 0.4. */
static __always_inline s64 cubic_window(const struct tables *tables, s64 before, u64 at)
{
	u64 third = less(log2_q24(tables, (u64)before * 3 / 4), 16 << 24) / 3;
	s64 turn = exp2_q16(tables, third);
	s64 distance = (min_u64(at, 1ULL << 46) << 16) / SECOND;
	s64 cube;

	distance = clamp_s64(distance - turn, -DISTANCE_MOST, DISTANCE_MOST);
	cube = (distance * distance >> 16) * distance >> 16;
	return before + divide(2 * cube, 5);
}

static __always_inline void suspect(struct law *law, const struct interval *last, u64 queue, u64 usual, bool starved)
{
	/* A competitor that was here a moment ago is believed sooner to be here again. */
	bool again = law->ended && less(last->now, law->ended) < AGAIN;
	u64 factor = again ? LONG_AGAIN : LONG;
	u32 intervals = again ? LONG_AGAIN_INTERVALS : LONG_INTERVALS;
	bool clean = !last->lost || last->lost * 100 < last->lost + last->acked;

	law->suspicious = queue > factor * usual && clean && (again || starved) ? law->suspicious + 1 : 0;
	if (law->suspicious < intervals)
		return;
	law->suspicious = 0;
	law->competing = 1;
	law->curve_since = last->now;
	law->curve_before = law->curve_reno = law->cwnd;
	law->curve_calm = EVENT;
	law->curve_longest = queue;
}

/* As Law::compete: `curve_cwnd` is the window that competition asks for, 0 without. */
__noinline int compete(struct law *law, const struct interval *last, const struct tables *tables,
		       const struct policy *policy)
{
	u64 best, queue, usual;

	if (!law || !last || !tables || !policy)
		return 0;
	law->curve_cwnd = 0;
	largest_sample(&law->rate_max, last->now, last->delivery, MINUTE);
	smallest_sample(&law->base, last->now / US, last->base / US, MINUTE / US);
	queue = less(last->rtt_min, smallest_of(&law->base));
	if (!law->competing) {
		best = max_u64(law->rate_max.value[0], Q16_ONE);
		usual = usual_queue(tables, policy, best);
		suspect(law, last, queue, usual, last->delivery * 10 < best);
		return 1;
	}
	law->curve_longest = max_u64(law->curve_longest, queue);
	if (queue * 10 <= law->curve_longest) {
		law->ended = last->now;
		end_competition(law);
		return 1;
	}
	law->curve_calm++;
	if (last->lost && law->curve_calm > EVENT) {
		law->curve_since = last->now;
		law->curve_before = law->cwnd;
		law->curve_calm = 0;
		law->curve_reno = (u64)law->cwnd * 7 / 10;
		law->curve_cwnd = law->curve_reno;
	} else {
		s64 cubic = cubic_window(tables, law->curve_before, less(last->now, law->curve_since) + last->srtt);

		law->curve_reno += RENO_GROWTH;
		if (cubic < law->curve_reno)
			cubic = law->curve_reno;
		law->curve_cwnd = clamp_s64(cubic, law->cwnd, law->cwnd + (law->cwnd >> 1));
	}
	return 1;
}
