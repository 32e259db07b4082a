/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The window that an overload leaves, in fixed point: own_queue/ceiling.rs of the core. */
#pragma once

#include "hold.h"

#define CWND_LEAST (2LL * PACKET)
#define NONE (1LL << 50)
/* In percent. */
#define AFTER_OVERLOAD 92
#define CEILING_USED 95
#define SAME_LEAST 80
#define SAME_MOST 115
#define EXCESS 125
#define EXCESS_LEAST 105
#define CREEP_LEAST 85
#define CEILING_INTERVALS 24
#define CREEP_INTERVALS 4
#define REST_MOST (10000 * MS)

static __always_inline void forget_ceiling(struct law *law)
{
	law->ceiling = NONE;
	law->ceiling_step = PACKET;
	law->calm = 0;
	law->ceiling_since = 0;
	law->overload = 0;
	law->known = 0;
}

/* A queue of less than a twentieth of the base does not count. */
static __always_inline bool is_little_queue(u64 queue, u64 base)
{
	return queue * 20 <= base;
}

static __always_inline u64 longer_rest(const struct law *law)
{
	return min_u64(2 * max_u64(law->ceiling_since, law->known ? law->known_rest : 0), REST_MOST);
}

static __always_inline s64 stay_below(struct law *law, s64 delivered, s64 cwnd)
{
	law->ceiling = max_u64(min_u64((u64)delivered * AFTER_OVERLOAD / 100, cwnd), CWND_LEAST);
	law->ceiling_step = PACKET;
	law->calm = 0;
	law->ceiling_since = 0;
	law->overload = delivered;
	return law->ceiling;
}

/* As Ceiling::set: of what a round trip delivered from a window of `cwnd`, with this queue. */
static __always_inline s64 set_ceiling(struct law *law, s64 delivered, s64 cwnd, u64 queue, u64 base)
{
	u64 before = max_u64(law->overload, PACKET);
	bool same = (u64)delivered * 100 >= before * SAME_LEAST && (u64)delivered * 100 <= before * SAME_MOST &&
		    is_little_queue(queue, base);

	if (same && (u64)cwnd * 100 >= before * EXCESS) {
		law->known_rest = longer_rest(law);
		law->known = 1;
		law->known_delivered = delivered;
		law->known_beyond = 0;
	} else if (!same || (u64)cwnd * 100 <= before * EXCESS_LEAST) {
		law->known = 0;
	}
	return stay_below(law, delivered, cwnd);
}

/* As Ceiling::come_back. */
static __always_inline bool comes_back(struct law *law, u64 queue, u64 base)
{
	if (!law->known || (u64)law->cwnd * 100 < (u64)law->known_delivered * EXCESS || !is_little_queue(queue, base))
		return false;
	law->known_rest = longer_rest(law);
	law->known_beyond = 0;
	law->known = 2;
	stay_below(law, law->known_delivered, NONE);
	return true;
}

/* As Ceiling::compare. */
static __always_inline bool is_another_path(struct law *law, s64 delivered)
{
	if (law->known != 2)
		return false;
	law->known = 1;
	if ((u64)delivered * 100 <= (u64)law->known_delivered * SAME_MOST)
		return false;
	law->known = 0;
	stay_below(law, delivered, NONE);
	return true;
}

/* As Ceiling::raise. */
static __always_inline s64 raise_ceiling(struct law *law, u64 delivered)
{
	law->calm++;
	if (law->calm <= CEILING_INTERVALS || (u64)law->cwnd * 100 < (u64)law->ceiling * CEILING_USED)
		return law->ceiling;
	if (law->known && law->ceiling_since < law->known_rest) {
		if (delivered * 100 < (u64)law->known_delivered * CREEP_LEAST &&
		    (u64)law->ceiling * 100 < (u64)law->known_delivered * SAME_MOST && law->calm % CREEP_INTERVALS == 0)
			law->ceiling += PACKET;
		return law->ceiling;
	}
	law->ceiling += law->ceiling_step;
	law->ceiling_step = min_u64((u64)law->ceiling_step * 5 / 4, NONE >> 4);
	if (!law->known)
		return law->ceiling;
	law->ceiling = min_u64(law->ceiling, 2 * (u64)law->known_delivered);
	if ((u64)law->ceiling * 100 > (u64)law->known_delivered * SAME_MOST)
		law->known_beyond++;
	if (law->known_beyond > CEILING_INTERVALS)
		law->known = 0;
	return law->ceiling;
}
