/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The law of the controller `own_queue`, in fixed point: own_queue/mod.rs, samples.rs, losses.rs and drain.rs of the
 * core. Windows and packets are in Q16. */
#pragma once

#include "ceiling.h"

/* As samples.rs. */
#define PART_SHORTEST (25 * MS)
#define SAMPLES_LEAST 8
#define FEW 10
#define INTERVAL_SHORTEST (10 * MS)
#define CWND_MOST ((s64)PACKET << 24)
/* Smallest part of the target that losses leave, and where some are the path's own; in Q16. */
#define RESTRAINED 4096
#define RESTRAINED_OWN 16384
#define VELOCITY_MOST (32 * Q16_ONE)
/* 0.15 and 0.85 in Q24. */
#define TERM_1 2516582LL
#define TERM_3 14260634LL
/* In Q20. */
#define HEAVY 104858
#define OWN_MOST 62915
/* In percent, and by how many the queue is below the base. */
#define STAYS 60
#define QUEUE_FELL 35
#define QUEUE_NONE 500
#define ARRIVES 80
/* Intervals after a cut in which losses from before are found. */
#define SETTLING 2
/* Jitter is less a queue as far as it exceeds the time of so many packets. */
#define JITTER_PACKETS 4ULL
/* Beyond the time of so many it hides what a policy was trained to see. */
#define JITTER_HIDES 2ULL
/* Times the base, for so many intervals. */
#define BLOAT 8
#define BLOATED 20

static __always_inline u64 split_mix(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static __always_inline u64 rotate_left(u64 value, u32 by)
{
	return value << by | value >> (64 - by);
}

/* As Rng::next_u64: xoshiro256++. */
static __always_inline u64 next_random(u64 *s)
{
	u64 result = rotate_left(s[0] + s[3], 23) + s[0];
	u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

static __always_inline void draw_jitter(struct law *law)
{
	/* 0.9 to 1.1 in Q24. */
	law->jitter = 15099494 + ((next_random(law->random) >> 40) * 3355443 >> 24);
}

static __always_inline void set_window(struct law *law, s64 cwnd)
{
	law->cwnd = clamp_s64(cwnd, CWND_LEAST, CWND_MOST);
}

static __always_inline void turn(struct law *law, bool below)
{
	law->below = below;
	law->steady = 1;
	law->velocity = Q16_ONE;
}

static __always_inline void forget_losses(struct law *law)
{
	law->pending = law->lost = law->sent = 0;
	law->probing = 0;
	forget_ceiling(law);
	law->settling = 0;
	for (int i = 0; i < DELIVERIES; i++)
		law->delivered[i] = 0;
}

static __always_inline void forget_group(struct law *law)
{
	law->group_packets = 0;
	law->group_rtt = law->group_rate = 0;
}

static __always_inline void end_part(struct law *law)
{
	law->part_sum += law->part_least;
	law->parts++;
	law->part_least = 0;
	law->part_packets = 0;
}

static __always_inline void start_law(struct law *law, u32 initial, u32 ssthresh, u64 now, u64 seed)
{
	law->initial = max_u64((u64)initial * PACKET, CWND_LEAST);
	law->cwnd = law->initial;
	law->until = ssthresh >= 0x7fffffff ? NONE : (s64)ssthresh * PACKET;
	law->starting = 1;
	law->before = 0;
	law->earlier = law->initial;
	law->left = 0;
	law->rtt = 0;
	law->steady = 0;
	law->below = 1;
	law->velocity = Q16_ONE;
	forget_losses(law);
	law->own = 0;
	for (int i = 0; i < 4; i++)
		law->random[i] = split_mix(&seed);
	draw_jitter(law);
	law->empty_at = now;
	law->draining = law->reached = law->over = law->rest = 0;
	law->drains = 0;
}

/* What may be in flight. */
static __always_inline s64 law_window(const struct law *law)
{
	if (law->draining && !law->reached)
		return clamp_s64(law->drain_window, CWND_LEAST, law->cwnd);
	return law->cwnd;
}

/* Packets per second in Q16: twice a window per round trip in the start, 1.02 times later. */
static __always_inline u64 law_rate(const struct law *law)
{
	u64 rtt_us = law->rtt / US;
	u64 percent = law->starting ? 200 : 102;

	if (!rtt_us)
		rtt_us = 1000;
	return (u64)law_window(law) * percent * 10000 / rtt_us;
}

/* ratio * sent, with chance. */
static __always_inline s64 allowed_losses(const struct tables *tables, s64 ratio, s64 sent)
{
	u64 expected = (u64)(ratio * (sent >> 4)) >> 16;

	return expected + 2 * max_u64(square_root(tables, expected << 16), PACKET / 2);
}

static __always_inline void restart_law(struct law *law, s64 until)
{
	law->until = until;
	law->starting = 1;
	law->draining = 0;
	law->rest = 0;
	law->left = 0;
	forget_group(law);
	forget_losses(law);
	turn(law, true);
}

/* The start has ended; what comes for a round trip are the effects of its last window. */
static __always_inline void leave_start(struct law *law, u64 now)
{
	law->starting = 0;
	law->earlier = law->cwnd;
	law->left = now;
	law->settling = SETTLING;
}

/* Packets were lost. */
__noinline int law_loss(struct law *law, const struct tables *tables, u32 packets, u64 now)
{
	if (!law || !tables)
		return 0;
	law->pending += (s64)packets * PACKET;
	if (law->starting && law->pending > allowed_losses(tables, HEAVY, law->cwnd)) {
		law->before = law->cwnd;
		leave_start(law, now);
		set_window(law, law->cwnd >> 1);
	}
	return 1;
}

static __always_inline void law_timeout(struct law *law, bool again)
{
	/* Within a repair it is the first that is answered here. */
	if (again && law->cwnd <= CWND_LEAST)
		return;
	law->before = again ? max_u64(law->before, law->cwnd) : law->cwnd;
	restart_law(law, max_u64(law->cwnd >> 1, CWND_LEAST));
	set_window(law, CWND_LEAST);
}

/* The latest loss was none: the window is that from before its answer. */
static __always_inline void law_spurious(struct law *law, u64 now)
{
	law->undone = now;
	set_window(law, max_u64(law->before, law->cwnd));
	law->before = 0;
}

static __always_inline void law_idle(struct law *law)
{
	restart_law(law, law->cwnd);
	set_window(law, min_u64(law->cwnd, law->initial));
}

/* Jitter beyond the time in which the flow sends so many packets at best. */
static __always_inline u64 jitter_beyond(const struct interval *last, u64 packets)
{
	return less(last->jitter, (packets << 16) * SECOND / max_u64(last->delivery_max, PACKET));
}

/* Of an action's second value in Q14: half of the power of two that it applies, in Q24. */
static __always_inline s64 half_effect(s64 value)
{
	s64 cubed = value * value * value >> 28;

	return (TERM_1 * value + TERM_3 * cubed) >> 15;
}

/* As is_misled_by_jitter of own_queue/mod.rs: 6 times the first value and 20 times the second one's effect. */
static __always_inline bool is_misled_by_jitter(const struct interval *last, s64 first, s64 second)
{
	return 6 * (first << 10) + 40 * half_effect(second) < 0 && jitter_beyond(last, JITTER_HIDES) > 0;
}

/* Own packets in the queue. */
static __always_inline s64 own_queue(const struct law *law, const struct interval *last)
{
	u64 above = less(law->rtt, last->base), waiting;

	if (!law->rtt)
		return 0;
	waiting = ((above - min_u64(jitter_beyond(last, JITTER_PACKETS), above) * 3 / 4) << 24) / law->rtt;
	return min_u64(law->cwnd, last->inflight_mean) * waiting >> 24;
}

/* Own packets in the queue once the latest change of the window shows in it. A larger window adds to a queue that is
 * there, and else fills the path. */
static __always_inline s64 queue_to_come(const struct law *law, s64 queue, s64 target)
{
	s64 change = law->cwnd - law->earlier;

	if (change >= 0 && 2 * queue <= target)
		return queue;
	return clamp_s64(queue + change, 0, CWND_MOST);
}

/* How many there should be at this rate. */
static __always_inline s64 target_packets(const struct law *law, const struct tables *tables,
					  const struct policy *policy, u64 rate, s32 action)
{
	s64 target = times_exp2(tables, plain_target(tables, policy, rate), 6LL * action * (1 << 10));

	return clamp_s64(target, PACKET, max_u64(law->cwnd, PACKET));
}

/* As may_have_waited. */
static __always_inline bool may_have_waited(const struct delivery *ack)
{
	return ack->acked >= ack->found && ack->found <= FEW;
}

/* As Parts::add. */
static __always_inline void add_to_part(struct law *law, const struct delivery *ack)
{
	if (!ack->rtt)
		return;
	if (!law->part_least)
		law->part_begin = ack->now;
	if (may_have_waited(ack))
		return;
	if (!law->part_least)
		law->part_least = ack->rtt;
	law->part_least = min_u64(law->part_least, ack->rtt);
	law->part_packets += ack->acked;
	if (law->part_packets < SAMPLES_LEAST)
		return;
	if (less(ack->now, law->part_begin) >= max_u64(PART_SHORTEST, ack->srtt * 3 / 10))
		end_part(law);
}

/* As Parts::take. */
static __always_inline void take_parts(struct law *law, u64 base)
{
	if (!law->parts && law->part_least)
		end_part(law);
	if (law->parts)
		law->rtt = (law->part_sum + law->parts / 2) / law->parts;
	else if (law->part_begin)
		law->rtt = base;
	law->part_begin = law->part_sum = law->part_least = 0;
	law->part_packets = law->parts = 0;
}

/* A window that fills a path with this round trip at this rate, and the target. */
__noinline u64 filled_window(const struct law *law, const struct tables *tables, const struct policy *policy, u64 base,
			     u64 rate)
{
	if (!law || !tables || !policy)
		return 0;
	/* Less rate first: the product must fit. */
	return (rate >> 4) * (base / US) / (1000000 >> 4) + target_packets(law, tables, policy, rate, 0);
}

/* What the last packets of the start tell: only they are delivered at the rate of the path, since a sample covers a
 * round trip, and the start sends twice as much in each. */
static __always_inline void follow_start(struct law *law, const struct delivery *ack, const struct tables *tables,
					 const struct policy *policy)
{
	u64 filled;

	if (!law->left)
		return;
	if (ack->sent_at > law->left) {
		law->left = 0;
		return;
	}
	filled = filled_window(law, tables, policy, ack->min_rtt, ack->rate);
	set_window(law, max_u64(law->cwnd, min_u64(filled, law->earlier)));
}

/* Whether the smallest of a group of samples shows a queue. */
static __always_inline bool look_for_a_queue(struct law *law, const struct delivery *ack, const struct tables *tables,
					     const struct policy *policy)
{
	u64 threshold = clamp_s64(ack->min_rtt / 8, 4 * MS, 16 * MS);
	u64 rtt, rate, filled;

	if (!ack->rtt || may_have_waited(ack))
		return false;
	rtt = law->group_packets ? min_u64(law->group_rtt, ack->rtt) : ack->rtt;
	rate = max_u64(law->group_rate, ack->rate);
	law->group_rtt = rtt;
	law->group_rate = rate;
	law->group_packets += ack->acked;
	if (law->group_packets < SAMPLES_LEAST)
		return false;
	forget_group(law);
	if (rtt <= ack->min_rtt + threshold)
		return false;
	leave_start(law, ack->now);
	filled = filled_window(law, tables, policy, ack->min_rtt, rate);
	set_window(law, clamp_s64(filled, law->cwnd >> 2, law->cwnd));
	turn(law, false);
	return true;
}

/* As Drains::on_ack. */
static __always_inline void follow_drain(struct law *law, const struct delivery *ack)
{
	bool sent_later = ack->sent_at > law->drain_since;

	if (law->reached) {
		law->over |= sent_later;
	} else if (sent_later || (s64)ack->found * PACKET <= law->drain_window) {
		law->reached = 1;
		law->drain_since = ack->now;
	}
}

static __always_inline void law_delivery(struct law *law, const struct delivery *ack, const struct tables *tables,
					 const struct policy *policy)
{
	bool is_of_pause = ack->sent_at < law->undone;

	law->found = max_u64(law->found, (u64)ack->found * PACKET);
	if (law->draining)
		follow_drain(law, ack);
	if (!is_of_pause)
		add_to_part(law, ack);
	if (!law->rtt)
		law->rtt = ack->rtt;
	if (!law->starting) {
		follow_start(law, ack, tables, policy);
		return;
	}
	if (!is_of_pause && look_for_a_queue(law, ack, tables, policy))
		return;
	if (ack->growing) {
		s64 grown = law->cwnd + (s64)ack->acked * PACKET;

		set_window(law, min_u64(grown, max_u64(law->until, law->cwnd)));
	}
	if (law->cwnd >= law->until)
		law->starting = 0;
}

/* What an interval adds to the window for an error in packets. */
static __always_inline s64 step_for(struct law *law, s64 error)
{
	bool below = error > 0;

	if (below != law->below) {
		turn(law, below);
	} else {
		law->steady++;
		if (law->steady >= 3)
			law->velocity = min_u64((u64)law->velocity * 3 / 2, VELOCITY_MOST);
	}
	error = clamp_s64(error, -CWND_MOST, CWND_MOST) * (s64)law->velocity >> 17;
	return clamp_s64(error, -(s64)((u64)law->cwnd / 5), law->cwnd >> 2);
}

enum answer {
	ANSWER_GO,
	ANSWER_HOLD,
	ANSWER_CUT,
	ANSWER_RESTORE,
};

/* Cuts the window; a round trip has delivered `delivered` packets before the latest cut. */
static __always_inline int begin_probe(struct law *law, s64 cwnd, s64 ratio, u64 queue, s64 delivered, s64 *to)
{
	for (int i = 0; i < DELIVERIES; i++)
		delivered = max_u64(delivered, law->delivered[i]);
	law->probing = 1;
	law->probe_cwnd = cwnd;
	law->probe_ratio = ratio;
	law->probe_queue = queue;
	law->probe_intervals = 0;
	law->probe_lost = law->probe_sent = 0;
	law->probe_queue_after = 0;
	law->probe_delivered = delivered;
	law->lost = law->sent = 0;
	*to = ratio > law->own + HEAVY ? cwnd >> 1 : (s64)((u64)cwnd * 7 / 10);
	return ANSWER_CUT;
}

/* part / whole in Q20. */
static __always_inline s64 loss_ratio(s64 part, s64 whole)
{
	return ((u64)part << 20) / max_u64(whole, PACKET);
}

static __always_inline s64 limit_in_all(const struct law *law, s64 limit)
{
	return limit + law->own + (law->own >> 2);
}

static __always_inline int conclude(struct law *law, const struct tables *tables, const struct interval *last,
				    s64 limit, s64 *to)
{
	s64 ratio = loss_ratio(law->probe_lost, law->probe_sent);
	bool small = law->probe_queue_after <= last->base / QUEUE_NONE + last->jitter / 2;
	bool fell = law->probe_queue_after * 100 <= law->probe_queue * QUEUE_FELL;
	u64 arrives = (u64)(law->delivered[DELIVERIES - 2] + law->delivered[DELIVERIES - 1]) / 2;
	bool fewer = arrives * 100 <= (u64)law->probe_delivered * ARRIVES;

	law->probing = 0;
	if ((small || fell) && fewer && ratio * 100 >= STAYS * law->probe_ratio) {
		law->own = min_u64(ratio, OWN_MOST);
		*to = law->probe_cwnd;
		return ANSWER_RESTORE;
	}
	if (small || fell)
		law->own = fewer ? min_u64(law->own, ratio) : 0;
	if (law->probe_lost > allowed_losses(tables, limit_in_all(law, limit), law->probe_sent))
		return begin_probe(law, (u64)law->probe_cwnd * 7 / 10, ratio, law->probe_queue_after,
				   law->probe_delivered, to);
	*to = set_ceiling(law, law->probe_delivered, law->probe_cwnd, law->probe_queue, last->base);
	return ANSWER_RESTORE;
}

/* Takes what a round trip of the interval has delivered. */
static __always_inline void note_delivered(struct law *law, const struct interval *last)
{
	u64 rtt_us = last->rtt_min / US;
	u64 time_us = max_u64(max_u64(last->duration / US, rtt_us / 10), 1);

	for (int i = 1; i < DELIVERIES; i++)
		law->delivered[i - 1] = law->delivered[i];
	law->delivered[DELIVERIES - 1] = (last->acked << 16) * rtt_us / time_us;
}

/* As Losses::judge: `to` is the window of a cut or of a restoration, or the ceiling. */
static __always_inline int judge_losses(struct law *law, const struct interval *last, const struct tables *tables,
					s64 limit, s64 *to)
{
	s64 lost = last->lost * PACKET, sent = (last->lost + last->acked) * PACKET;
	u64 queue = less(last->rtt_min, last->base), mean_queue = less(last->rtt_mean, last->base), mean = 0;
	u32 judged;

	law->pending = 0;
	law->ceiling_since += last->duration;
	note_delivered(law, last);
	if (law->probing) {
		law->probe_intervals++;
		judged = law->probe_intervals > SETTLING ? law->probe_intervals - SETTLING : 0;
		if (judged) {
			law->probe_lost += lost;
			law->probe_sent += sent;
			law->probe_queue_after = max_u64(law->probe_queue_after, queue);
		}
		if ((judged < 2 || law->probe_sent < 60 * PACKET) && judged < 6)
			return ANSWER_HOLD;
		return conclude(law, tables, last, limit, to);
	}
	if (law->settling) {
		law->settling--;
		if (!is_another_path(law, law->delivered[DELIVERIES - 1]))
			return ANSWER_HOLD;
		*to = law->ceiling;
		return ANSWER_RESTORE;
	}
	law->lost = (law->lost - (law->lost >> 2)) + (lost << 16);
	law->sent = (law->sent - (law->sent >> 2)) + sent;
	if (law->lost >> 16 <= allowed_losses(tables, limit_in_all(law, limit), law->sent)) {
		for (int i = 0; i < DELIVERIES; i++)
			mean += law->delivered[i];
		*to = raise_ceiling(law, mean / DELIVERIES);
		return ANSWER_GO;
	}
	if (comes_back(law, mean_queue, last->base)) {
		law->lost = law->sent = 0;
		law->settling = SETTLING;
		*to = law->ceiling;
		return ANSWER_CUT;
	}
	return begin_probe(law, law->cwnd, loss_ratio(law->lost >> 16, law->sent), mean_queue, 0, to);
}

/* As Losses::restraint, in Q16. The verifier follows a function that is not inline once, not with each path to it. */
__noinline u64 restraint(const struct law *law, const struct tables *tables, u64 limit)
{
	u64 part;

	if (!law || !tables || law->sent <= 0)
		return Q16_ONE;
	/* Q28: the root of a small part needs more bits than a ratio has. */
	part = min_u64((min_u64(law->lost, 1ULL << 51) << 12) / (u64)law->sent, 1ULL << 28);
	part = square_root(tables, min_u64((part << 32) / max_u64(limit << 8, 1), 1ULL << 32));
	return max_u64(Q16_ONE - part, law->own ? RESTRAINED_OWN : RESTRAINED);
}

/* As Drains::on_interval. */
static __always_inline bool rests(struct law *law, u64 now, bool empty)
{
	if (empty)
		law->empty_at = now;
	if (law->draining && law->over) {
		law->draining = 0;
		law->empty_at = now;
		draw_jitter(law);
		law->rest = 1;
		return true;
	}
	if (law->draining || law->rest) {
		if (law->rest)
			law->rest--;
		return true;
	}
	return false;
}

static __always_inline bool drain_is_due(const struct law *law, const struct interval *last)
{
	u64 rtts = last->srtt * (law->drains ? 50 : 10);
	u64 every = max_u64(law->drains ? 5000 * MS : 1250 * MS, min_u64(rtts, 8000 * MS));

	return less(last->now, law->empty_at) > (every >> 8) * law->jitter >> 16;
}

static __always_inline void begin_drain(struct law *law, const struct interval *last, u64 found)
{
	u64 pipe = min_u64(law->cwnd, found);

	pipe = last->rtt_min ? pipe * (last->base / US) / (last->rtt_min / US) : pipe;
	law->drains++;
	law->draining = 1;
	law->reached = law->over = 0;
	law->drain_since = last->now;
	law->drain_window = pipe / 2;
}

static __always_inline bool silent(const struct interval *last)
{
	return last->duration > max_u64(last->srtt, INTERVAL_SHORTEST) + 2 * last->srtt;
}

/* Takes an action back where the flow's own queue has been far too long. */
static __always_inline void limit_bloat(struct law *law, const struct interval *last, s64 queue, s32 *action)
{
	bool bloated = last->rtt_min > BLOAT * last->base && 2 * queue > law->cwnd;

	law->bloated = bloated ? law->bloated + 1 : 0;
	if (law->bloated < BLOATED)
		return;
	action[0] = clamp_s64(action[0], -Q14_ONE, 0);
	action[1] = clamp_s64(action[1], -Q14_ONE, -Q14_ONE / 2);
}

/* The window that losses, queue and target ask for. */
static __always_inline s64 plain_window(struct law *law, int answer, s64 to, s64 error)
{
	s64 step;

	if (answer == ANSWER_CUT) {
		law->before = law->cwnd;
		law->cuts++;
		turn(law, false);
		return to;
	}
	if (answer == ANSWER_RESTORE) {
		turn(law, true);
		return to;
	}
	step = step_for(law, error);
	if (answer == ANSWER_HOLD)
		to = law->cwnd;
	return min_u64(law->cwnd + step, max_u64(to, law->cwnd));
}

static __always_inline void steer(struct law *law, const struct interval *last, const struct tables *tables,
				  const struct policy *policy, s32 *action, u64 found)
{
	s64 queue = own_queue(law, last);
	s64 target, error, next, effect, to = 0;
	int answer;

	limit_bloat(law, last, queue, action);
	answer = judge_losses(law, last, tables, policy->loss_limit, &to);
	target = target_packets(law, tables, policy, last->delivery, action[0]);
	target = (u64)target * restraint(law, tables, policy->loss_limit) >> 16;
	if (rests(law, last->now, queue * 4 < target))
		return;
	largest_sample(&law->rate_max, last->now, last->delivery, MINUTE);
	smallest_sample(&law->base, last->now / US, last->base / US, MINUTE / US);
	error = target - queue_to_come(law, queue, target);
	next = plain_window(law, answer, to, error);
	if (last->marked) {
		turn(law, false);
		next = min_u64(next, (u64)law->cwnd * 85 / 100);
	}
	effect = half_effect(action[1]);
	/* What a larger window loses while a cut is judged would count as the path's own. */
	if ((answer == ANSWER_CUT || answer == ANSWER_HOLD) && effect > 0)
		effect = 0;
	next = times_exp2(tables, next, effect);
	if (law->held)
		next = max_u64(next, min_u64(held_window(law, last), law->cwnd + (law->cwnd >> 2)));
	if (next > law->cwnd && silent(last))
		return;
	set_window(law, next);
	if (!law->held && drain_is_due(law, last))
		begin_drain(law, last, found);
}

/* As Law::on_interval; the action is in Q14. */
__noinline int law_interval(struct law *law, const struct interval *last, const struct tables *tables,
			    const struct policy *policy, const struct governed *own)
{
	s32 action[2];
	u64 found;
	s64 before, limit;

	if (!law || !last || !tables || !policy || !own)
		return 0;
	action[0] = clamp_s64(own->action[0], -Q14_ONE, Q14_ONE);
	action[1] = clamp_s64(own->action[1], -Q14_ONE, Q14_ONE);
	take_parts(law, last->base);
	found = law->found;
	law->found = 0;
	largest_sample(&law->found_max, last->now, found, WINDOW);
	before = law->cwnd;
	if (!law->starting)
		steer(law, last, tables, policy, action, found);
	set_window(law, clamp_s64(law->cwnd, before >> 1, before << 1));
	limit = 2 * law->found_max.value[0] + 10 * PACKET;
	if (law->cwnd > limit)
		set_window(law, limit);
	if (!law->left)
		law->earlier = before;
	return 1;
}
