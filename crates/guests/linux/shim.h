/* What Linux's congestion controllers ask of the kernel, as far as they use it: types, fields, macros. Every header that
 * they include is this one. What the kernel's own sources define is not here: build.sh takes it from there. */
#ifndef ACKADEMY_SHIM_H
#define ACKADEMY_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
typedef u8 __u8;
typedef u32 __u32;
typedef u64 __u64;

/* Of the flow whose controller runs. The kernel has one clock and one generator; here each flow has its own. */
struct flow_clock {
  u32 jiffies;
  u64 random;
};
extern _Thread_local struct flow_clock *flow_clock;
u32 flow_random_below(u32 ceiling);

#define U32_MAX UINT32_MAX
#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))
#define HZ 250 /* Debian's CONFIG_HZ */
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define MSEC_PER_SEC 1000L
#define NSEC_PER_USEC 1000L
#define tcp_jiffies32 (flow_clock->jiffies)
#define prandom_u32_max flow_random_below
#define get_random_u32_below flow_random_below
#define usecs_to_jiffies(us) ((u32)(((us) + USEC_PER_SEC / HZ - 1) / (USEC_PER_SEC / HZ)))
#define msecs_to_jiffies(ms) usecs_to_jiffies((ms) * USEC_PER_MSEC)

#define __read_mostly
#define __init
#define __exit
#define __bpf_kfunc
#define unlikely(x) (x)
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define cmpxchg(at, old, new) (*(at) == (old) ? (*(at) = (new), (old)) : *(at))
#define BUILD_BUG_ON(what) _Static_assert(!(what), #what)
#define WARN_ONCE(what, ...) ((void)(what))
#define WARN_ON_ONCE(what) ((void)(what))
#define pr_debug(...) ((void)0)
#define sock_net(sk) NULL
#define NET_INC_STATS(net, counter) ((void)0)
#define NET_ADD_STATS(net, counter, value) ((void)0)

#define min_t(type, a, b) ({ type a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(type, a, b) ({ type a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define min(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ __auto_type a_ = (a); __auto_type b_ = (b); a_ > b_ ? a_ : b_; })
#define clamp(x, low, high) min(max(x, low), high)
#define before(a, b) ((s32)((u32)(a) - (u32)(b)) < 0)
#define after(a, b) before(b, a)
#define do_div(n, base) ({ u32 rest_ = (n) % (base); (n) /= (base); rest_; })
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div64_ul(a, b) ((u64)(a) / (unsigned long)(b))
#define div64_long(a, b) ((s64)(a) / (long)(b))
#define fls64(x) ((x) ? 64 - __builtin_clzll(x) : 0)

/* A module registers itself when the library is loaded. */
#define module_init(start) __attribute__((constructor)) static void run_##start(void) { start(); }
#define module_exit(end) __attribute__((unused)) static void (*const run_##end)(void) = end;
#define module_param(...)
#define MODULE_PARM_DESC(...)
#define MODULE_AUTHOR(...)
#define MODULE_LICENSE(...)
#define MODULE_DESCRIPTION(...)
#define MODULE_VERSION(...)
#define EXPORT_SYMBOL(name)
#define EXPORT_SYMBOL_GPL(name)
#define THIS_MODULE NULL
#define BTF_SET8_START(name) __attribute__((unused)) static const int name = 0;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
struct btf_kfunc_id_set {
  void *owner;
  const void *set;
};

#include "win_minmax.h"

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum { TCPF_CA_CWR = 1 << TCP_CA_CWR, TCPF_CA_Recovery = 1 << TCP_CA_Recovery };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART, CA_EVENT_COMPLETE_CWR, CA_EVENT_LOSS };
enum { SK_PACING_NONE, SK_PACING_NEEDED };
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_INIT_CWND 10
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320u
#define ICSK_CA_PRIV_SIZE 104
#define INET_DIAG_VEGASINFO 3
#define INET_DIAG_BBRINFO 16
struct tcpvegas_info {
  u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
union tcp_cc_info {
  struct tcpvegas_info vegas;
  struct {
    u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
  } bbr;
};

struct tcp_congestion_ops;
struct sock {
  unsigned long sk_pacing_rate, sk_max_pacing_rate;
  u32 sk_pacing_status, sk_gso_max_size;
  u8 sk_pacing_shift;
};
struct inet_connection_sock {
  u8 icsk_ca_state;
  u64 icsk_ca_priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
};
struct tcp_sock {
  struct sock sk;
  struct inet_connection_sock icsk;
  struct minmax rtt_min;
  u64 tcp_mstamp, tcp_wstamp_ns, tcp_clock_cache, delivered_mstamp;
  u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh, prior_cwnd, prior_ssthresh;
  u32 snd_una, snd_nxt, lsndtime, mss_cache, srtt_us;
  u32 packets_out, sacked_out, lost_out, retrans_out, max_packets_out;
  u32 delivered, lost, app_limited;
  bool is_cwnd_limited;
};
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_csk(sk) (&tcp_sk(sk)->icsk)
#define inet_csk_ca(sk) ((void *)tcp_sk(sk)->icsk.icsk_ca_priv)

struct rate_sample {
  u32 prior_delivered;
  s32 delivered;
  long interval_us, rtt_us;
  int losses;
  u32 acked_sacked, prior_in_flight;
  bool is_app_limited, is_ack_delayed;
};
struct ack_sample {
  u32 pkts_acked;
  s32 rtt_us;
  u32 in_flight;
};

struct tcp_congestion_ops {
  u32 flags;
  const char *name;
  void *owner;
  void (*init)(struct sock *);
  u32 (*ssthresh)(struct sock *);
  void (*cong_avoid)(struct sock *, u32 ack, u32 acked);
  void (*set_state)(struct sock *, u8);
  void (*cwnd_event)(struct sock *, enum tcp_ca_event);
  u32 (*undo_cwnd)(struct sock *);
  void (*pkts_acked)(struct sock *, const struct ack_sample *);
#ifdef CONG_CONTROL_TAKES_ACK /* since Linux 6.10 */
  void (*cong_control)(struct sock *, u32 ack, int flag, const struct rate_sample *);
#else
  void (*cong_control)(struct sock *, const struct rate_sample *);
#endif
  u32 (*sndbuf_expand)(struct sock *);
  u32 (*min_tso_segs)(struct sock *);
  size_t (*get_info)(struct sock *, u32, int *, union tcp_cc_info *);
};
int tcp_register_congestion_control(struct tcp_congestion_ops *);
static inline void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops) { (void)ops; }
u32 tcp_slow_start(struct tcp_sock *, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *);
void tcp_reno_cong_avoid(struct sock *, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *);

/* Of include/net/tcp.h: functions of one or two lines that read and write these fields. */
#include "tcp_inline.h"
#endif
