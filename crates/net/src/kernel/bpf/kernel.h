/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program uses of the kernel's types. CO-RE moves the members to where the running kernel
 * has them, so only names and types matter here. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

enum tcp_ca_event { CA_EVENT_TX_START };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct netns_ipv4 {
	__u8 sysctl_tcp_min_tso_segs;
	__u8 sysctl_tcp_slow_start_after_idle;
};

struct net {
	struct ns_common ns;
	struct netns_ipv4 ipv4;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	__u8 s6_addr[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct sock {
	struct sock_common __sk_common;
	kuid_t sk_uid;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	__u8 icsk_ca_state : 5;
	__u8 icsk_ca_initialized : 1;
	__u8 icsk_retransmits;
	void *icsk_ulp_data;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 mss_cache;
	__u16 tcp_header_len;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 snd_una;
	__u32 high_seq;
	__u32 prr_out;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 lost;
	__u32 srtt_us;
	__u32 lsndtime;
	__u64 bytes_sent;
	__u64 first_tx_mstamp;
	__u64 tcp_mstamp;
	__u8 is_cwnd_limited : 1;
	__u32 max_packets_out;
	bool is_mptcp; /* absent without CONFIG_MPTCP */
};

/* Absent without CONFIG_MPTCP. */
struct mptcp_subflow_context {
	__u32 token;
	__u32 subflow_id; /* since 6.5 */
};

struct rate_sample {
	__s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	__u32 acked_sacked;
	bool is_app_limited;
	bool is_retrans;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *);
	void (*set_state)(struct sock *, __u8);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*cwnd_event_tx_start)(struct sock *); /* since 7.1, for CA_EVENT_TX_START */
	void (*cong_control)(struct sock *, __u32, int, const struct rate_sample *);
	__u32 (*undo_cwnd)(struct sock *);
	__u32 (*min_tso_segs)(struct sock *);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *);
	void (*release)(struct sock *);
};

/* Before 6.10. */
struct tcp_congestion_ops___v69 {
	__u32 (*ssthresh)(struct sock *);
	void (*set_state)(struct sock *, __u8);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*cong_control)(struct sock *, const struct rate_sample *);
	__u32 (*undo_cwnd)(struct sock *);
	__u32 (*min_tso_segs)(struct sock *);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *);
	void (*release)(struct sock *);
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

enum tcp_ca_state { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };

enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };

enum { TCP_CONG_NON_RESTRICTED = 1 };

enum { AF_INET = 2, AF_INET6 = 10 };

enum { TCP_LISTEN = 10 };

enum { IPPROTO_TCP = 6, TCP_CONGESTION = 13 };

/* TCP_INFINITE_SSTHRESH */
#define SSTHRESH_INFINITE 0x7fffffff

extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 state) __ksym;
/* The second has replaced the first in 7.1. */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym __weak;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
