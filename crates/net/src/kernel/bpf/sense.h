/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Signals of a monitor interval: signals.rs and its windowed minimum and maximum, in fixed point. */
#pragma once

#include <stdbool.h>

#include "fixed.h"

#define MS 1000000ULL
#define US 1000ULL
#define SECOND 1000000000ULL
/* Of the smallest round trip and the largest delivery rate. */
#define WINDOW (10 * SECOND)
/* A round trip is left out if a smaller one came within so small a part of the window. */
#define RESOLUTION 64
/* Intervals without an estimate of the jitter, and those over which it is averaged. */
#define JITTER_UNKNOWN 4
#define JITTER_INTERVALS 16
/* No difference between the samples of an interval counts as more: its square must fit. */
#define DIFFERENCE_MAX_US (1 << 22)

/* As WindowedMax::sample. */
static __always_inline void largest_sample(struct largest *all, u64 at, u64 value, u64 window)
{
	u64 since;

	if (value >= all->value[0] || at - all->at[2] > window) {
		for (int i = 0; i < 3; i++) {
			all->at[i] = at;
			all->value[i] = value;
		}
		return;
	}
	if (value >= all->value[1]) {
		all->at[1] = all->at[2] = at;
		all->value[1] = all->value[2] = value;
	} else if (value >= all->value[2]) {
		all->at[2] = at;
		all->value[2] = value;
	}
	since = at - all->at[0];
	if (since > window) {
		bool both = at - all->at[1] > window;

		all->at[0] = both ? all->at[2] : all->at[1];
		all->value[0] = both ? all->value[2] : all->value[1];
		all->at[1] = both ? at : all->at[2];
		all->value[1] = both ? value : all->value[2];
		all->at[2] = at;
		all->value[2] = value;
	} else if (all->at[1] == all->at[0] && since > window / 4) {
		all->at[1] = all->at[2] = at;
		all->value[1] = all->value[2] = value;
	} else if (all->at[2] == all->at[1] && since > window / 2) {
		all->at[2] = at;
		all->value[2] = value;
	}
}

#define kept_at(own, index) (&(own)->kept[((own)->head + (index)) & (KEPT - 1)])

/* As WindowedMin::sample: times are 32 bits of microseconds. */
__noinline int smallest_sample(struct smallest *own, u32 at, u32 rtt, u32 window)
{
	if (!own)
		return 0;
	for (int i = 0; i < KEPT_MOST; i++) {
		if (!own->length || kept_at(own, own->length - 1)->rtt_us < rtt)
			break;
		own->length--;
	}
	if (!own->length || at - kept_at(own, own->length - 1)->at_us >= window / RESOLUTION) {
		kept_at(own, own->length)->at_us = at;
		kept_at(own, own->length)->rtt_us = rtt;
		own->length++;
	}
	for (int i = 0; i < KEPT_MOST; i++) {
		if (own->length <= 1 || at - kept_at(own, 0)->at_us <= window)
			break;
		own->head++;
		own->length--;
	}
	return 1;
}

static __always_inline u64 smallest_of(struct smallest *own)
{
	return own->length ? (u64)kept_at(own, 0)->rtt_us * US : 0;
}

/* As Jitter::add: takes the smallest round trip of the interval, before it is one of the recent ones. */
static __always_inline void take_jitter(struct signals *own)
{
	s64 second = (s64)own->min - 2 * (s64)own->recent[3] + (s64)own->recent[2];
	u64 difference = second < 0 ? -second : second;
	u64 least = min_u64(difference, min_u64(own->differences[0], own->differences[1]));

	own->differences[1] = own->differences[0];
	own->differences[0] = difference;
	if (own->round_trips < JITTER_UNKNOWN + JITTER_INTERVALS)
		own->round_trips++;
	if (own->round_trips <= JITTER_UNKNOWN)
		return;
	own->jitter_mean += divide((s64)least - (s64)own->jitter_mean, own->round_trips - JITTER_UNKNOWN);
	own->last.jitter = 4 * own->jitter_mean;
}

/* Takes the smallest round trip of the interval; last_within of windowed_min.rs tells when it was confirmed. */
__noinline int take_base(struct signals *own)
{
	struct smallest *base;
	u32 at, near;
	u64 newest, base_near;

	if (!own)
		return 0;
	base = &own->base;
	at = own->min_at / US;
	smallest_sample(base, at, own->min / US, WINDOW / US);
	own->last.base = smallest_of(base);
	base_near = own->last.base + own->last.base / 50;
	near = base_near / US;
	newest = own->min_at;
	if (own->min > base_near) {
		for (u32 i = 1; i <= KEPT_MOST; i++) {
			if (i > base->length)
				break;
			if (kept_at(base, base->length - i)->rtt_us <= near) {
				/* The time of the sample, of which 32 bits of microseconds are kept. */
				u32 before = at - kept_at(base, base->length - i)->at_us;

				newest = own->min_at - before * US;
				break;
			}
		}
	}
	own->near_base = max_u64(own->near_base, newest);
	return 1;
}

static __always_inline void start_signals(struct signals *own, u64 now)
{
	own->near_base = now;
	own->last.now = now;
	own->last.since_loss = ~0U;
}

/* As Signals::on_ack, of one acknowledgement. */
static __always_inline void sense_delivery(struct signals *own, const struct delivery *ack)
{
	u64 weight = ack->acked ? ack->acked : 1;
	s64 difference;

	own->acked += ack->acked;
	if (ack->app_limited)
		own->app_limited += ack->acked;
	own->inflight += (u64)ack->acked * ack->found;
	own->last.srtt = ack->srtt;
	if (!ack->rtt)
		return;
	if (!own->weight) {
		own->first = own->min = ack->rtt;
		own->min_at = ack->now;
		own->sum_us = 0;
		own->square_us2 = 0;
	}
	if (ack->rtt <= own->min) {
		own->min = ack->rtt;
		own->min_at = ack->now;
	}
	difference = ack->rtt < own->first ? -(s64)((own->first - ack->rtt) / US) : (s64)((ack->rtt - own->first) / US);
	difference = clamp_s64(difference, -DIFFERENCE_MAX_US, DIFFERENCE_MAX_US);
	own->weight += weight;
	own->sum_us += (s64)weight * difference;
	own->square_us2 += weight * (u64)(difference * difference);
}

/* As Signals::on_loss: a gap of nothing is a mark that the sender has answered. */
static __always_inline void sense_loss(struct signals *own, u32 packets, enum loss kind)
{
	if (kind == LOSS_GAP || kind == LOSS_TIMEOUT)
		own->lost_before = own->lost;
	own->lost += packets;
	own->marked += kind == LOSS_GAP && !packets;
	own->timeout |= kind == LOSS_TIMEOUT || kind == LOSS_TIMEOUT_AGAIN;
}

/* Nothing of the latest episode was lost. */
static __always_inline void sense_spurious(struct signals *own)
{
	own->lost = own->lost_before;
	own->timeout = 0;
}

static __always_inline s32 drain_of(const u64 *recent, u64 base)
{
	u64 least = ~0ULL, most = 0;

	for (int i = 0; i < 4; i++) {
		if (!recent[i])
			continue;
		least = min_u64(least, recent[i]);
		most = max_u64(most, recent[i]);
	}
	least = less(least, base);
	most = less(most, base);
	return most < MS ? 0 : ratio_q14(least, most);
}

static __always_inline void end_round_trips(const struct tables *tables, struct signals *own)
{
	struct interval *last = &own->last;
	u64 before = last->rtt_min, weight = own->weight;
	s64 mean_q8 = divide(own->sum_us * 256, weight);
	u64 size = mean_q8 < 0 ? -mean_q8 : mean_q8;
	u64 square = own->square_us2 / weight;

	last->rtt_min = own->min;
	last->rtt_mean = own->first + divide(mean_q8 * (s64)US, 256);
	/* In 1/256 us, of the variance in us^2. */
	last->rtt_sd = square_root(tables, less(square << 16, size * size)) * US / 256;
	if (before && last->duration) {
		s64 change = (s64)last->rtt_min - (s64)before;

		change = clamp_s64(change, -(1LL << 40), 1LL << 40);
		last->rtt_change = clamp_s64(divide(change * Q14_ONE, last->duration), -(1 << 20), 1 << 20);
	}
	take_jitter(own);
	take_base(own);
	own->recent[0] = own->recent[1];
	own->recent[1] = own->recent[2];
	own->recent[2] = own->recent[3];
	own->recent[3] = own->min;
	last->drain = drain_of(own->recent, last->base);
}

/* Packets per second in Q16: in ns where the product fits, for the same order of rates as in floating point. */
static __always_inline u64 rate_of(u64 packets, u64 duration)
{
	if (packets < 1 << 17)
		return duration ? (packets << 16) * SECOND / duration : 0;
	return duration >= US ? (packets << 16) * 1000000 / (duration / US) : 0;
}

static __always_inline void end_delivery(struct signals *own)
{
	struct interval *last = &own->last;
	u64 rate;

	if (!last->duration || !(own->delivered || last->acked))
		return;
	rate = rate_of(last->acked, last->duration);
	if (own->delivered)
		last->delivery += divide((s64)(rate - last->delivery), 4);
	else
		last->delivery = rate;
	own->delivered = 1;
	largest_sample(&own->delivery, last->now, last->delivery, WINDOW);
	last->delivery_max = own->delivery.value[0];
}

/* As Signals::end. */
__noinline int end_interval(struct signals *own, const struct tables *tables, u64 now)
{
	struct interval *last;

	if (!own || !tables)
		return 0;
	last = &own->last;
	last->duration = less(now, last->now);
	last->now = now;
	last->acked = own->acked;
	last->lost = own->lost;
	last->marked = own->marked;
	last->app_limited = own->app_limited;
	last->rtt_change = 0;
	if (own->lost)
		last->since_loss = 0;
	else if (last->since_loss != ~0U)
		last->since_loss++;
	last->timeout = own->timeout;
	if (own->acked)
		last->inflight_mean = (own->inflight << 16) / own->acked;
	if (own->weight)
		end_round_trips(tables, own);
	end_delivery(own);
	last->base_age = less(now, own->near_base);
	own->acked = own->lost = own->marked = own->app_limited = own->inflight = 0;
	own->lost_before = own->timeout = 0;
	own->weight = 0;
	return 1;
}

/* Q24 to Q14. */
static __always_inline s64 to_q14(s64 value)
{
	return (value + 512) >> 10;
}

/* As features.rs. */
__noinline int feature_of(const struct interval *last, const struct tables *tables, const struct governed *own,
			  u32 which)
{
	s64 value = 0, low = 0, high = Q14_ONE;
	u64 marked;

	if (!last || !tables || !own)
		return 0;
	switch (which) {
	case FEATURE_QUEUE:
		value = to_q14(log_ratio(tables, last->rtt_min, last->base));
		high = 3 * Q14_ONE;
		break;
	case FEATURE_RTT_RISE:
		value = to_q14(log_ratio(tables, last->rtt_mean, last->rtt_min));
		high = 2 * Q14_ONE;
		break;
	case FEATURE_RTT_SPREAD:
		value = ratio_q14(last->rtt_sd, last->base);
		high = 2 * Q14_ONE;
		break;
	case FEATURE_LOSS_LOG:
		value = to_q14(divide(log_ratio(tables, last->acked + 101 * last->lost, last->acked + last->lost), 5));
		break;
	case FEATURE_CE_RATIO:
		marked = last->marked;
		value = ratio_q14(marked, max_u64(last->acked, marked));
		break;
	case FEATURE_DRAIN:
		value = last->drain;
		break;
	case FEATURE_RTT_CHANGE:
		value = last->rtt_change;
		low = -Q14_ONE;
		break;
	case FEATURE_BASE_RTT:
		value = to_q14(divide(log_ratio(tables, last->base, 50 * MS), 3));
		low = -3 * Q14_ONE;
		high = 3 * Q14_ONE;
		break;
	case FEATURE_BASE_AGE:
		value = to_q14(log_ratio(tables, last->srtt + last->base_age, last->srtt) >> 3);
		high = 2 * Q14_ONE;
		break;
	case FEATURE_OWN_BEST:
		value = ratio_q14(last->delivery, last->delivery_max);
		high = Q14_ONE + Q14_ONE / 2;
		break;
	case FEATURE_APP_LIMITED:
		value = ratio_q14(last->app_limited, last->acked);
		break;
	case FEATURE_SINCE_LOSS:
		value = to_q14(divide(log_ratio(tables, 1ULL + last->since_loss, 1), 6));
		break;
	case FEATURE_ACTION_0:
		value = own->action[0];
		low = -Q14_ONE;
		break;
	case FEATURE_ACTION_1:
		value = own->action[1];
		low = -Q14_ONE;
		break;
	}
	return clamp_s64(value, low, high);
}

/* Adds the interval's vector to the history, which is the network's input: the oldest first. */
__noinline int push_features(struct governed *own, const struct tables *tables, const struct policy *policy)
{
	u64 width, keep;
	u32 outside = 0;

	if (!own || !tables || !policy)
		return 0;
	width = policy->width;
	keep = (u64)(policy->rows - 1) * width;
	for (u64 i = 0; i < VALUES_MAX; i++) {
		u64 from = i + width;

		if (i >= keep || from >= VALUES_MAX)
			break;
		checked(from);
		own->evaluation.input.of[i] = own->evaluation.input.of[from];
	}
	for (u64 i = 0; i < FEATURES_MAX; i++) {
		u64 to = keep + i;
		s32 value;

		if (i >= width || to >= VALUES_MAX)
			break;
		checked(to);
		own->evaluation.input.of[to] = value =
			feature_of(&own->signals.last, tables, own, policy->features[i]);
		/* The signs: a branch here would double what the verifier follows. */
		outside |= ((u64)((s64)value - policy->low[i]) | (u64)((s64)policy->high[i] - value)) >> 63;
	}
	own->outside = own->outside << 1 | outside;
	return 1;
}
