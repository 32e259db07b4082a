/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers in fixed point: the kernel has no others. `Qn` is a whole number of 2^-n. */
#pragma once

#include "compiled.h"

typedef __s32 s32;
typedef __s64 s64;
typedef __u32 u32;
typedef __u64 u64;

#define Q14_ONE (1 << 14)

/* The compiler must not move what uses a number to before the check of it: the verifier would not know. */
#define checked(number) asm volatile("" : "+r"(number))

static __always_inline s64 clamp_s64(s64 value, s64 low, s64 high)
{
	return value < low ? low : value > high ? high : value;
}

/* Division that rounds to the nearest and takes signs: the instruction set has only unsigned ones. */
static __always_inline s64 divide(s64 part, u64 whole)
{
	u64 size = part < 0 ? -part : part;

	if (!whole)
		return 0;
	size = (size + whole / 2) / whole;
	return part < 0 ? -(s64)size : (s64)size;
}

/* Number of the highest bit that is set; 0 for 0 and 1. Without branches, of which the verifier would follow every
 * combination: a product with a de Bruijn sequence names the bit in its upper six. */
static __always_inline u32 highest_bit(const struct tables *tables, u64 value)
{
	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	return tables->bits[((value - (value >> 1)) * DE_BRUIJN) >> 58];
}

/* Base-2 logarithm in Q24, to 4e-6; of 0 as of 1. */
static __always_inline s64 log2_q24(const struct tables *tables, u64 value)
{
	u32 bit = highest_bit(tables, value);
	/* The bits below the highest one, in Q32: the first 8 choose the entry, the rest lies between. */
	u64 part = bit <= 32 ? value << (32 - bit) : value >> (bit - 32);
	u32 low = part; /* the highest bit falls off */
	u32 index = value > 1 ? low >> 24 : 0;
	s64 begin = tables->log2[index & 255];
	s64 step = tables->log2[(index & 255) + 1] - begin;

	if (value <= 1)
		return 0;
	return ((s64)bit << 24) + begin + (step * (low & 0xffffff) >> 24);
}

/* 2^exponent in Q16, to 1e-5 relative or 2^-17; the exponent is in Q24 and is taken as within [-16, 31]. */
static __always_inline u64 exp2_q16(const struct tables *tables, s64 exponent)
{
	u64 size;
	u32 whole, index;

	exponent = clamp_s64(exponent, -(16LL << 24), 31LL << 24) + (16LL << 24);
	whole = exponent >> 24;
	index = exponent >> 16 & 255;
	size = tables->exp2[index]; /* Q30, in [1, 2) */
	size += (((u64)tables->exp2[index + 1] - size) * (exponent & 0xffff)) >> 16;
	/* Q30 to Q16 of 2^(whole - 16): 30 bits less. */
	return whole < 30 ? (size + (1ULL << (29 - whole))) >> (30 - whole) : size << (whole - 30);
}

/* Largest whole number whose square is at most `value`: Newton's method from above, whose error of at most once the
 * root is below 1e-30 of it after six steps. */
static __always_inline u64 square_root(const struct tables *tables, u64 value)
{
	u64 root = 2ULL << (highest_bit(tables, value) >> 1 & 31);

	for (int i = 0; i < 6; i++)
		root = (root + value / root) / 2;
	return root * root > value ? root - 1 : root;
}

/* Hyperbolic tangent from Q14 to Q14, to 6e-5. */
static __always_inline s32 tanh_q14(const struct tables *tables, s64 x)
{
	u64 size = x < 0 ? -x : x;
	u32 index, begin, step, value;

	if (size >= TANH_END << 14)
		return x < 0 ? -Q14_ONE : Q14_ONE;
	index = size >> 8; /* steps of 1/64 */
	if (index >= TANH_STEPS)
		return 0; /* for the verifier */
	begin = tables->tanh[index]; /* Q15 */
	step = tables->tanh[index + 1] - begin;
	value = ((begin << 8) + step * (u32)(size & 255) + 256) >> 9;
	return x < 0 ? -(s32)value : (s32)value;
}

#define Q16_ONE (1 << 16)
#define LN_2_Q24 11629080LL

/* value * 2^exponent, to 2e-5 relative; the value is below 2^40, the exponent is in Q24 and is taken as within
 * [-8, 8]. */
static __always_inline s64 times_exp2(const struct tables *tables, s64 value, s64 exponent)
{
	u64 size;
	u32 whole, index;

	exponent = clamp_s64(exponent, -(8LL << 24), (8LL << 24) - 1) + (8LL << 24);
	whole = exponent >> 24 & 15;
	index = exponent >> 16 & 255;
	size = tables->exp2[index];
	size += (((u64)tables->exp2[index + 1] - size) * (exponent & 0xffff)) >> 16;
	/* Q30 to Q16. */
	return (value * (s64)(size >> 14)) >> (24 - whole);
}

/* ln(part / whole) in Q24; 0 without either. */
static __always_inline s64 log_ratio(const struct tables *tables, u64 part, u64 whole)
{
	if (!part || !whole)
		return 0;
	return ((log2_q24(tables, part) - log2_q24(tables, whole)) * LN_2_Q24) >> 24;
}

/* part / whole in Q14; 0 without a whole. */
static __always_inline s64 ratio_q14(u64 part, u64 whole)
{
	return whole ? ((part << 14) + whole / 2) / whole : 0;
}

static __always_inline u64 min_u64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static __always_inline u64 max_u64(u64 a, u64 b)
{
	return a > b ? a : b;
}

static __always_inline u64 less(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}
