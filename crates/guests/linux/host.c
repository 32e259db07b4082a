/* The sender's side of Linux's tcp_congestion_ops: turns the records of ackademy.h into the calls of tcp_input.c, and
 * what the controller sets into an answer. One flow is one ackademy_controller. */
#pragma GCC visibility push(default)
#include "../../ffi/include/ackademy.h"
#pragma GCC visibility pop
#include "shim.h"
#include <stdio.h>

struct state {
  struct tcp_sock tp;
  struct flow_clock clock;
  u64 delivered_bytes, lost_bytes, repaired_at;
  u64 limited_from, limited_until;
  bool sent_once;
};
struct ackademy_controller {
  struct state is;
  const struct tcp_congestion_ops *ops;
  u64 mss;
  u32 initial_cwnd;
  /* The kernel finds the losses that an acknowledgement shows before the controller runs; here they are told after it.
   * Then the controller runs again, from the state before. */
  struct state before;
  ackademy_ack ack;
  bool has_ack;
  u32 losses; /* packets that `ack` showed to be lost */
};

_Thread_local struct flow_clock *flow_clock;

static struct tcp_congestion_ops *registered[16];
static char names[256];

int tcp_register_congestion_control(struct tcp_congestion_ops *ops) {
  size_t count = 0, length = strlen(names);
  while (registered[count]) count++;
  registered[count] = ops;
  snprintf(names + length, sizeof names - length, "%s%s", length ? "," : "", ops->name);
  return 0;
}

/* Its functions are in tcp_cong.c. */
static struct tcp_congestion_ops reno = {
    .name = "reno",
    .ssthresh = tcp_reno_ssthresh,
    .cong_avoid = tcp_reno_cong_avoid,
    .undo_cwnd = tcp_reno_undo_cwnd,
};
__attribute__((constructor)) static void register_reno(void) { tcp_register_congestion_control(&reno); }

/* splitmix64; the kernel takes its generator's word by the same multiplication. */
u32 flow_random_below(u32 ceiling) {
  u64 z = flow_clock->random += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (u64)(u32)(z ^ (z >> 31)) * ceiling >> 32;
}

/* Of a sum that only grows: it wraps, as the kernel's. */
static u32 total(const ackademy_controller *c, u64 bytes) { return bytes / c->mss + (bytes % c->mss > 0); }

/* Of an amount: no more than tcp_cubic.c says it is made for. */
#define PACKETS_MAX (1u << 20)
static u32 packets(const ackademy_controller *c, u64 bytes) {
  return min(bytes / c->mss + (bytes % c->mss > 0), (u64)PACKETS_MAX);
}

/* No longer than Linux's longest time-out: controllers multiply it in 32 bits. */
static u32 micros(u64 ns) { return min(ns / 1000, (u64)(120 * USEC_PER_SEC)); }

/* The clocks of a kernel that has run for a while: 0 means `never` to some controllers. */
static void enter(ackademy_controller *c, u64 now) {
  const u64 us = now / 1000 + 1000 * USEC_PER_SEC;
  flow_clock = &c->is.clock;
  c->is.clock.jiffies = us / (USEC_PER_SEC / HZ);
  c->is.tp.tcp_mstamp = us;
  c->is.tp.tcp_clock_cache = c->is.tp.tcp_wstamp_ns = us * NSEC_PER_USEC; /* nothing waits in the host */
  c->is.tp.snd_cwnd = max(c->is.tp.snd_cwnd, 1u); /* the kernel warns of 0, and some divide by it */
}

static void set_state(ackademy_controller *c, u8 state) {
  if (c->ops->set_state) c->ops->set_state(&c->is.tp.sk, state);
  c->is.tp.icsk.icsk_ca_state = state;
}

static void event(ackademy_controller *c, enum tcp_ca_event event) {
  if (c->ops->cwnd_event) c->ops->cwnd_event(&c->is.tp.sk, event);
}

static int answer(ackademy_controller *c, ackademy_answer *to) {
  const struct tcp_sock *tp = &c->is.tp;
  if (!to) return ACKADEMY_OK;
  to->cwnd = (u64)max(tp->snd_cwnd, 1u) * c->mss;
  to->pacing_rate =
      tp->sk.sk_pacing_status == SK_PACING_NEEDED ? max(8ul * tp->sk.sk_pacing_rate, 1ul) : ACKADEMY_NONE;
  to->ssthresh = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ? ACKADEMY_NONE : (u64)tp->snd_ssthresh * c->mss;
  to->timer = ACKADEMY_NONE;
  return ACKADEMY_OK;
}

/* tcp_update_pacing_rate: for those that set no rate, HyStart reads it. */
static void estimate_pacing(ackademy_controller *c) {
  struct tcp_sock *tp = &c->is.tp;
  const u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
  if (tp->srtt_us)
    tp->sk.sk_pacing_rate =
        tp->mss_cache * (u64)max(tp->snd_cwnd, tp->packets_out) * percent / 100 * USEC_PER_SEC * 8 / tp->srtt_us;
}

/* tcp_rate_gen. The rate gives the interval back. */
static struct rate_sample sample(ackademy_controller *c, const ackademy_ack *ack, u32 acked) {
  struct tcp_sock *tp = &c->is.tp;
  struct rate_sample rs = {.delivered = -1, .interval_us = -1, .rtt_us = -1, .acked_sacked = acked};
  if (tp->app_limited && after(tp->delivered, tp->app_limited)) {
    tp->app_limited = 0;
    c->is.limited_until = ack->now;
  }
  if (ack->delivered_since) {
    rs.delivered = packets(c, ack->delivered_since);
    rs.prior_delivered = tp->delivered - rs.delivered;
  }
  if (ack->delivery_rate) {
    const double us = 8e6 * ack->delivered_since / ack->delivery_rate + 0.5;
    rs.interval_us = us < 1 ? 1 : us > 1e12 ? 1000000000000 : (long)us;
  }
  if (ack->rtt) rs.rtt_us = micros(ack->rtt);
  rs.losses = c->losses;
  rs.prior_in_flight = packets(c, ack->prior_inflight);
  rs.is_app_limited = ack->app_limited || (ack->sent_at >= c->is.limited_from && ack->sent_at < c->is.limited_until);
  return rs;
}

static void deliver(ackademy_controller *c, const ackademy_ack *ack) {
  struct tcp_sock *tp = &c->is.tp;
  tp->delivered_mstamp = tp->tcp_mstamp;
  c->is.delivered_bytes += ack->acked;
  tp->delivered = tp->snd_una = total(c, c->is.delivered_bytes);
  tp->packets_out = packets(c, ack->inflight);
  tp->max_packets_out = packets(c, ack->prior_inflight);
  tp->is_cwnd_limited = ack->cwnd_limited;
  tp->srtt_us = micros(ack->srtt) << 3;
  if (ack->min_rtt) minmax_reset(&tp->rtt_min, 0, micros(ack->min_rtt));
}

/* The end of tcp_ack: samples, state, window. */
static void acknowledge(ackademy_controller *c, const ackademy_ack *ack) {
  struct tcp_sock *tp = &c->is.tp;
  const u32 before_it = tp->delivered;
  enter(c, ack->now);
  deliver(c, ack);
  const u32 acked = min(tp->delivered - before_it, PACKETS_MAX);
  if (c->ops->pkts_acked) {
    const struct ack_sample one = {acked, ack->rtt ? (s32)micros(ack->rtt) : -1, packets(c, ack->prior_inflight)};
    c->ops->pkts_acked(&tp->sk, &one);
  }
  const bool repaired = tp->icsk.icsk_ca_state == TCP_CA_Loss ? c->is.delivered_bytes >= c->is.repaired_at : true;
  if (tp->icsk.icsk_ca_state > TCP_CA_Disorder && !ack->recovering && repaired) set_state(c, TCP_CA_Open);
  const struct rate_sample rs = sample(c, ack, acked);
  const u32 limited_before = tp->app_limited;
  if (c->ops->cong_control) {
#ifdef CONG_CONTROL_TAKES_ACK
    c->ops->cong_control(&tp->sk, tp->snd_una, 0, &rs);
#else
    c->ops->cong_control(&tp->sk, &rs);
#endif
  } else {
    if (!ack->recovering && acked) c->ops->cong_avoid(&tp->sk, tp->snd_una, acked);
    estimate_pacing(c);
  }
  if (tp->app_limited && !limited_before) {
    c->is.limited_from = ack->now;
    c->is.limited_until = UINT64_MAX;
  }
}

int ackademy_on_ack(ackademy_controller *c, u32 subflow, const ackademy_ack *ack, ackademy_answer *to) {
  if (!c || subflow || !ack) return ACKADEMY_BAD_ARGUMENT;
  c->before = c->is;
  c->ack = *ack;
  c->has_ack = true;
  c->losses = 0;
  acknowledge(c, ack);
  return answer(c, to);
}

/* tcp_enter_loss. */
static void time_out(ackademy_controller *c, bool again) {
  struct tcp_sock *tp = &c->is.tp;
  if (!again) {
    tp->prior_ssthresh = tp->snd_ssthresh;
    tp->prior_cwnd = tp->snd_cwnd;
    tp->snd_ssthresh = c->ops->ssthresh(&tp->sk);
    event(c, CA_EVENT_LOSS);
  }
  tp->snd_cwnd = 1; /* packets in flight, of which there are none, and one */
  tp->snd_cwnd_cnt = 0;
  tp->packets_out = 0;
  set_state(c, TCP_CA_Loss);
}

/* tcp_enter_recovery and tcp_enter_cwr. The sender reduces towards the threshold itself where the controller leaves that
 * to it. */
static void reduce(ackademy_controller *c, u8 state) {
  struct tcp_sock *tp = &c->is.tp;
  tp->prior_ssthresh = tp->snd_ssthresh;
  tp->prior_cwnd = tp->snd_cwnd;
  tp->snd_cwnd_cnt = 0;
  tp->snd_ssthresh = c->ops->ssthresh(&tp->sk);
  set_state(c, state);
  if (!c->ops->cong_control) tp->snd_cwnd = tp->snd_ssthresh;
}

/* tcp_undo_cwnd_reduction. */
static void undo(ackademy_controller *c) {
  struct tcp_sock *tp = &c->is.tp;
  tp->snd_cwnd = c->ops->undo_cwnd(&tp->sk);
  tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
  set_state(c, TCP_CA_Open);
}

/* tcp_cwnd_restart, for an idle time of many time-outs. */
static void restart(ackademy_controller *c) {
  struct tcp_sock *tp = &c->is.tp;
  if (c->ops->cong_control) return;
  event(c, CA_EVENT_CWND_RESTART);
  tp->snd_ssthresh = tcp_current_ssthresh(&tp->sk);
  tp->snd_cwnd = min(tp->snd_cwnd, c->initial_cwnd);
}

int ackademy_on_loss(ackademy_controller *c, u32 subflow, const ackademy_loss *loss, ackademy_answer *to) {
  if (!c || subflow || !loss || loss->kind > ACKADEMY_TIMEOUT_AGAIN) return ACKADEMY_BAD_ARGUMENT;
  const bool is_new = loss->kind == ACKADEMY_GAP || loss->kind == ACKADEMY_MORE;
  const bool by_ack = c->has_ack && loss->now == c->ack.now && is_new;
  if (by_ack) c->is = c->before;
  enter(c, loss->now);
  const u32 lost_before = c->is.tp.lost;
  c->is.lost_bytes += loss->lost;
  c->is.tp.lost = total(c, c->is.lost_bytes);
  switch (loss->kind) {
  case ACKADEMY_GAP: reduce(c, loss->lost ? TCP_CA_Recovery : TCP_CA_CWR); break;
  case ACKADEMY_MORE: c->is.repaired_at += loss->lost; break;
  case ACKADEMY_TIMEOUT:
  case ACKADEMY_TIMEOUT_AGAIN:
    c->is.repaired_at = max(c->is.repaired_at, c->is.delivered_bytes + loss->lost);
    time_out(c, loss->kind == ACKADEMY_TIMEOUT_AGAIN);
    break;
  case ACKADEMY_SPURIOUS: undo(c); break;
  case ACKADEMY_IDLE: restart(c); break;
  }
  if (by_ack) {
    c->before = c->is;
    c->losses += min(c->is.tp.lost - lost_before, PACKETS_MAX);
    acknowledge(c, &c->ack);
  }
  return answer(c, to);
}

/* tcp_event_data_sent, and what sending after a pause says of the application. */
int ackademy_on_send(ackademy_controller *c, u32 subflow, const ackademy_send *send, ackademy_answer *to) {
  if (!c || subflow || !send) return ACKADEMY_BAD_ARGUMENT;
  struct tcp_sock *tp = &c->is.tp;
  enter(c, send->now);
  tp->packets_out = packets(c, send->inflight);
  if (!tp->packets_out) {
    const u32 limited_before = tp->app_limited;
    if (!send->retransmission && c->is.sent_once) tp->app_limited = max(tp->delivered, 1u);
    event(c, CA_EVENT_TX_START);
    tp->app_limited = limited_before; /* the record says it of each packet */
  }
  if (!send->retransmission) tp->snd_nxt++;
  tp->lsndtime = tcp_jiffies32;
  c->is.sent_once = true;
  return answer(c, to);
}

int ackademy_control(ackademy_controller *c, u32 subflow, ackademy_answer *to) {
  return c && !subflow ? answer(c, to) : ACKADEMY_BAD_ARGUMENT;
}

ackademy_controller *ackademy_new(const char *name, const char *settings, const ackademy_flow *flow, char *err,
                                  size_t err_len) {
  size_t at = 0;
  while (registered[at] && (!name || strcmp(registered[at]->name, name))) at++;
  const bool made = registered[at] && flow && flow->mss >= 64 && flow->mss <= 65535 && flow->initial_cwnd >= flow->mss &&
                    !(settings && *settings);
  ackademy_controller *c = made ? calloc(1, sizeof *c) : NULL;
  if (!c) {
    if (err) snprintf(err, err_len, "controller %s: allowed is %s, without settings", name ? name : "", names);
    return NULL;
  }
  struct tcp_sock *tp = &c->is.tp;
  c->ops = registered[at];
  c->mss = tp->mss_cache = flow->mss;
  c->is.clock.random = flow->seed;
  c->initial_cwnd = tp->snd_cwnd = packets(c, flow->initial_cwnd);
  c->is.limited_from = UINT64_MAX;
  tp->snd_cwnd_clamp = PACKETS_MAX;
  tp->snd_ssthresh = min(flow->initial_ssthresh / flow->mss, (u64)TCP_INFINITE_SSTHRESH);
  tp->sk.sk_max_pacing_rate = ~0ul;
  tp->sk.sk_pacing_shift = 10;
  tp->sk.sk_gso_max_size = GSO_LEGACY_MAX_SIZE;
  minmax_reset(&tp->rtt_min, 0, ~0u);
  enter(c, flow->start);
  tp->delivered_mstamp = tp->tcp_mstamp;
  if (c->ops->init) c->ops->init(&tp->sk);
  return c;
}

void ackademy_free(ackademy_controller *c) { free(c); }

uint32_t ackademy_abi(void) { return ACKADEMY_ABI; }

size_t ackademy_sizeof(uint32_t record) {
  const size_t sizes[] = {sizeof(ackademy_flow), sizeof(ackademy_ack), sizeof(ackademy_loss), sizeof(ackademy_send),
                          sizeof(ackademy_answer)};
  return record < sizeof sizes / sizeof *sizes ? sizes[record] : 0;
}

const char *ackademy_names(void) { return names; }
