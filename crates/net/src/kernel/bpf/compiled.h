/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What user space compiles a policy into; compiled/layout.rs holds the same layouts. */
#pragma once

#include <linux/types.h>

/* Layers, numbers between two layers, and words of weights and biases at most. */
#define LAYERS_MAX 4
#define VALUES_MAX 128
#define WORDS_MAX 6656
/* The table of the hyperbolic tangent ends here: beyond, it is 1. */
#define TANH_END 8
#define TANH_STEPS (TANH_END * 64)

enum activation {
	ACTIVATION_LINEAR,
	ACTIVATION_RELU,
	ACTIVATION_TANH,
};

struct layer {
	__u32 inputs; /* a multiple of 4 */
	__u32 units; /* a multiple of 8 */
	__u32 first; /* word */
	__u32 shift; /* a weight of 1 is 2^shift */
	__u32 activation;
	__u32 reserved;
};

/* Weights lie in groups of 8 units, two of them in a word, lower half first: of each group the biases, in
 * the scale of the sums, and then the weights of each input. */
struct network {
	__u32 count; /* of layers; 0: no network */
	__u32 reserved;
	struct layer layers[LAYERS_MAX];
	__u64 words[WORDS_MAX];
};

#define DE_BRUIJN 0x03f79d71b4cb0a89ULL

struct tables {
	__u32 log2[257]; /* log2(1 + i / 256) in Q24 */
	__u32 exp2[257]; /* 2^(i / 256) in Q30 */
	__u16 tanh[TANH_STEPS + 2]; /* tanh(i / 64) in Q15 */
	__u8 bits[64]; /* which power of two has i in the upper six bits of its product with DE_BRUIJN */
};

/* In Q14. */
struct values {
	__s32 of[VALUES_MAX];
};

struct evaluation {
	struct values input;
	struct values first; /* of the two that the layers' results alternate between */
	struct values second;
};

/* For asking what is computed, without a connection. */
struct question {
	struct evaluation evaluation;
	__u64 number;
	__s64 answer[8];
};

_Static_assert(sizeof(struct network) == 8 + 24 * LAYERS_MAX + 8 * WORDS_MAX, "layout.rs");
_Static_assert(sizeof(struct tables) == 8 * 257 + 2 * (TANH_STEPS + 2) + 64, "layout.rs");
_Static_assert(sizeof(struct evaluation) == 12 * VALUES_MAX, "layout.rs");
