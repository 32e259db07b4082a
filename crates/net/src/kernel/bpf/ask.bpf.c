/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asks what the congestion control computes in the kernel, one step at a time, for numbers that user space
 * puts into a map: the same code, run by the same machine, without a connection. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "decide.h"

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct network);
} network SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct question);
} questions SEC(".maps");

SEC("syscall")
int ask_network(void *ctx)
{
	__u32 zero = 0;
	struct network *net = bpf_map_lookup_elem(&network, &zero);
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);
	struct question *question = bpf_map_lookup_elem(&questions, &zero);
	const struct values *result;

	if (!net || !all || !question)
		return 1;
	result = run_network(net, all, &question->governed.evaluation);
	if (!result)
		return 2;
	for (int i = 0; i < GROUP; i++)
		question->answer[i] = result->of[i];
	return 0;
}

SEC("syscall")
int ask_functions(void *ctx)
{
	__u32 zero = 0;
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);
	struct question *question = bpf_map_lookup_elem(&questions, &zero);

	if (!all || !question)
		return 1;
	question->answer[0] = log2_q24(all, question->number);
	question->answer[1] = exp2_q16(all, (s64)question->number);
	question->answer[2] = square_root(all, question->number);
	question->answer[3] = tanh_q14(all, (s64)question->number);
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct policy);
} policy SEC(".maps");

/* A flow opens: `acked` is its initial window and `found` its threshold, `sent_at` the seed. */
SEC("syscall")
int ask_start(void *ctx)
{
	__u32 zero = 0;
	struct question *question = bpf_map_lookup_elem(&questions, &zero);
	struct delivery *flow;

	if (!question)
		return 1;
	flow = &question->delivery;
	start_governed(&question->governed, flow->acked, flow->found, flow->now, flow->sent_at);
	return 0;
}

SEC("syscall")
int ask_delivery(void *ctx)
{
	__u32 zero = 0;
	struct network *net = bpf_map_lookup_elem(&network, &zero);
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);
	struct policy *rules = bpf_map_lookup_elem(&policy, &zero);
	struct question *question = bpf_map_lookup_elem(&questions, &zero);

	if (!net || !all || !question || !rules)
		return 1;
	question->answer[0] = on_delivery(&question->governed, &question->delivery, net, all, rules);
	question->answer[1] = law_window(&question->governed.law);
	question->answer[2] = law_rate(&question->governed.law);
	return 0;
}

/* `acked` packets were lost at `now`; `found` is an enum loss. */
SEC("syscall")
int ask_loss(void *ctx)
{
	__u32 zero = 0;
	struct tables *all = bpf_map_lookup_elem(&tables, &zero);
	struct question *question = bpf_map_lookup_elem(&questions, &zero);
	struct delivery *loss;

	if (!all || !question)
		return 1;
	loss = &question->delivery;
	on_loss(&question->governed, all, loss->acked, loss->now, loss->found);
	question->answer[1] = law_window(&question->governed.law);
	question->answer[2] = law_rate(&question->governed.law);
	return 0;
}
