/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rate below which a flow does not yield: own_queue/hold.rs of the core, in fixed point. */
#pragma once

#include "contention.h"

/* Time without contention whose best rate counts, and so few intervals of it that they tell nothing. */
#define CALM_MEMORY (20 * SECOND)
#define CALM_LEAST 30
/* Part of what is lost, Q32, from which on the rate is too large: a fiftieth. */
#define HELD_LOSS_MOST 85899346
/* So many intervals with too small a delivery rate. */
#define BEHIND_MOST 4
/* Losses and falls within so many intervals are one event. */
#define EVENT 10
/* No interval counts as longer than so many microseconds. */
#define APPROACH_MOST 10000000

/* The window that the rate asks for. */
static __always_inline s64 held_window(const struct law *law, const struct interval *last)
{
	return law->held * (last->rtt_min / US) / 1000000;
}

static __always_inline void begin_hold(struct law *law, const struct interval *last)
{
	u64 known = law->calm_intervals < CALM_LEAST ? last->delivery : law->calm_max.value[0];

	law->holding = 1;
	law->held = known / 2;
	law->hold_cwnd = law->cwnd;
	law->hold_rtt = last->rtt_min;
	law->hold_given = last->delivery;
	law->hold_reached = law->behind = 0;
	law->events = law->event_intervals = 0;
	law->event_packets = law->event_mean = law->event_longest = 0;
}

/* As Held::check. */
static __always_inline void check_hold(struct law *law, const struct interval *last)
{
	u64 start = (u64)law->hold_cwnd >> 8, earlier = (u64)law->earlier >> 8;

	/* Each time the window has grown by a fifth: the round trip grew by 0.85 of that, the delivery rate by at most 0.03. */
	if (law->hold_cwnd && 5 * earlier >= 6 * start) {
		if (20 * (last->rtt_min / US) * start >= (law->hold_rtt / US) * (3 * start + 17 * earlier) &&
		    last->delivery * 100 <= law->hold_given * 103)
			law->held = 0;
		law->hold_cwnd = law->earlier;
		law->hold_rtt = last->rtt_min;
		law->hold_given = last->delivery;
	}
	if (last->delivery * 10 >= law->held * 8)
		law->hold_cwnd = 0;
	if (law->cwnd >= held_window(law, last))
		law->hold_reached = 1;
	law->behind = law->hold_reached && last->delivery * 10 < law->held * 9 ? law->behind + 1 : 0;
	if (law->behind >= BEHIND_MOST) {
		law->held = last->delivery * 10 < law->held * 6 ? last->delivery : law->held * 9 / 10;
		law->behind = 0;
	}
}

/* As Events::on_interval. */
static __always_inline void note_event(struct law *law, const struct interval *last, u64 queue)
{
	s64 more;

	law->event_packets += last->acked + last->lost;
	law->event_intervals++;
	law->event_longest = max_u64(law->event_longest, queue);
	if (!last->lost && queue * 4 >= law->event_longest * 3)
		return;
	if (law->event_intervals > EVENT) {
		more = (s64)(law->event_packets << 16) - (s64)law->event_mean;
		law->event_mean += law->events ? divide(more, 4) : more;
		law->events++;
		law->event_packets = 0;
	}
	law->event_intervals = 0;
	law->event_longest = queue;
}

/* As Held::approach: CUBIC's mean window, 1.054 (RTT n)^(3/4) with n packets between events, and at least Reno's. */
static __always_inline void approach_fair(struct law *law, const struct interval *last, const struct tables *tables)
{
	u64 packets = max_u64(max_u64(law->event_mean, law->event_packets << 16), PACKET);
	u64 srtt_us = last->srtt / US, root, window, fair;

	if (law->events < 2 || !srtt_us)
		return;
	packets = min_u64(packets, 1ULL << 40);
	root = square_root(tables, min_u64(packets * min_u64(srtt_us, 1 << 23) / 1000000, 1ULL << 44) << 16);
	window = (root * square_root(tables, root << 16) >> 16) * 1054 / 1000;
	window = max_u64(window, square_root(tables, packets << 16) * 1225 / 1000);
	fair = window * 1000000 / srtt_us;
	if (law->held > fair)
		law->held -= ((law->held - fair) >> 8) * min_u64(last->duration / US, APPROACH_MOST) / APPROACH_MOST << 8;
}

/* As Hold::on_interval. */
__noinline int hold_rate(struct law *law, const struct interval *last, const struct tables *tables, u64 queue,
			 u32 flags)
{
	u64 all, lost;

	if (!law || !last || !tables)
		return 0;
	all = last->lost + last->acked;
	lost = all ? (min_u64(last->lost, 1U << 31) << 32) / all : 0;
	law->lost_mean += divide((s64)lost - (s64)law->lost_mean, 8);
	if (!(flags & 1)) {
		law->holding = 0;
		law->held = 0;
		if (!(flags & 2)) {
			law->calm_intervals++;
			largest_sample(&law->calm_max, last->now, last->delivery, CALM_MEMORY);
		}
		return 1;
	}
	if (!law->holding)
		begin_hold(law, last);
	check_hold(law, last);
	if (law->lost_mean > HELD_LOSS_MOST)
		law->held = law->held * 9 / 10;
	note_event(law, last, queue);
	approach_fair(law, last, tables);
	return 1;
}

/* As Law::update_contention. */
static __always_inline bool update_contention(struct law *law, const struct interval *last,
					      const struct tables *tables, const struct policy *policy)
{
	u64 base = law->base.length ? min_u64(smallest_of(&law->base), last->base) : last->base;
	u64 best = max_u64(max_u64(law->rate_max.value[0], last->delivery), Q16_ONE);
	u64 queue = less(last->rtt_min, base);
	bool is_long = queue > SIGN_LONG * usual_queue(tables, policy, best);
	bool contended = is_contended(law, last, queue, is_long);

	hold_rate(law, last, tables, queue, contended | is_long << 1);
	return contended;
}
