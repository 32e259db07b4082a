/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A network of dense layers. A word of 64 bits holds the weights of two units, so that one product with an
 * input serves both: the sum of the lower one borrows from the upper one, which is given back at the end. The
 * compiler in user space has made sure that no sum leaves its half. */
#pragma once

#include <stdbool.h>

#include "fixed.h"

/* Units that are summed together, and words for them. */
#define GROUP 8
#define GROUP_WORDS (GROUP / 2)
/* Inputs of one turn of the loop: the compiler pads with zeros. */
#define TURN 4

#define TAKE(offset)                                       \
	do {                                               \
		u64 x = (s64)inputs[offset];               \
		sum0 += x * row[GROUP_WORDS * offset];     \
		sum1 += x * row[GROUP_WORDS * offset + 1]; \
		sum2 += x * row[GROUP_WORDS * offset + 2]; \
		sum3 += x * row[GROUP_WORDS * offset + 3]; \
	} while (0)
#define GIVE(word)                                                             \
	do {                                                                   \
		s32 low = sum##word;                                           \
		to->of[unit + 2 * word] = low;                                 \
		to->of[unit + 2 * word + 1] = (sum##word - (u64)(s64)low) >> 32; \
	} while (0)

/* Functions of their own, not inline: the verifier goes through each once, whatever called it. */

/* The sums of a group; 0 where the network has numbers that the compiler does not write. */
__noinline int sum_group(const struct network *net, const struct values *from, struct values *to, u32 number,
			 u32 unit)
{
	const struct layer *layer;
	const u64 *row;
	u64 count, at, sum0, sum1, sum2, sum3;

	if (!net || !from || !to || number >= LAYERS_MAX || unit > VALUES_MAX - GROUP)
		return 0;
	layer = &net->layers[number];
	count = layer->inputs;
	at = layer->first + (u64)(unit / GROUP) * (count + 1) * GROUP_WORDS;
	if (at > WORDS_MAX - GROUP_WORDS)
		return 0;
	checked(at);
	row = &net->words[at];
	sum0 = row[0];
	sum1 = row[1];
	sum2 = row[2];
	sum3 = row[3];
	at += GROUP_WORDS;
	for (u64 i = 0; i < VALUES_MAX; i += TURN) {
		const s32 *inputs = &from->of[i];

		if (i >= count)
			break;
		if (at > WORDS_MAX - GROUP_WORDS * TURN)
			return 0;
		checked(at);
		row = &net->words[at];
		TAKE(0);
		TAKE(1);
		TAKE(2);
		TAKE(3);
		at += GROUP_WORDS * TURN;
	}
	GIVE(0);
	GIVE(1);
	GIVE(2);
	GIVE(3);
	return 1;
}

/* From sums to Q14, and the function of the layer. */
__noinline int activate(const struct layer *layer, const struct tables *tables, struct values *values)
{
	u64 units;
	u32 shift, activation;

	if (!layer || !tables || !values)
		return 0;
	units = layer->units;
	shift = layer->shift & 31;
	activation = layer->activation;
	for (u64 unit = 0; unit < VALUES_MAX; unit++) {
		s64 value;

		if (unit >= units)
			break;
		value = values->of[unit];
		value = (value + ((1LL << shift) >> 1)) >> shift;
		if (activation == ACTIVATION_TANH)
			value = tanh_q14(tables, value);
		else if (activation == ACTIVATION_RELU && value < 0)
			value = 0;
		values->of[unit] = value;
	}
	return 1;
}

/* One layer; false where the network has numbers that the compiler does not write. */
static __always_inline bool run_layer(const struct network *net, const struct tables *tables,
				      const struct values *from, struct values *to, u32 number)
{
	u32 units = net->layers[number].units;

	for (u32 unit = 0; unit < VALUES_MAX; unit += GROUP) {
		if (unit >= units)
			break;
		if (!sum_group(net, from, to, number, unit))
			return false;
	}
	return activate(&net->layers[number], tables, to);
}

/* All layers: from `state->input` to the first values of the result. Null where the network is none. */
static __always_inline const struct values *run_network(const struct network *net, const struct tables *tables,
							struct evaluation *state)
{
	struct values *from = &state->input, *to = &state->first, *other = &state->second;

	for (u32 number = 0; number < LAYERS_MAX; number++) {
		if (number >= net->count)
			break;
		if (!run_layer(net, tables, from, to, number))
			return 0;
		from = to;
		to = other;
		other = from;
	}
	return from;
}
