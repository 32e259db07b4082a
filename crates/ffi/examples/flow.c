/* One flow over a link of 20 Mb/s, 40 ms and 100 packets, in its own virtual time: flow NAME [SETTINGS]. */
#include <ackademy.h>
#include <stdio.h>

#ifndef SECONDS
#define SECONDS 20
#endif
enum { MSS = 1500, BUFFER = 100, RING = 1 << 16 };
static const uint64_t MS = 1000000, RTT = 40000000, PER_PACKET = MSS * 8 * 1000 / 20, END = SECONDS * 1000000000ull;

struct packet {
  uint64_t sent_at, acked_at; /* acked_at is 0 if the queue dropped it */
  ackademy_sent sent;
};
static struct packet ring[RING];
static uint64_t now = 1000000000, head, tail, link_free, next_send, lost, recovery_end;
static uint64_t srtt, min_rtt = UINT64_MAX;
static ackademy_rate rate;
static ackademy_answer answer;
static ackademy_controller *controller;

static uint64_t inflight(void) { return (tail - head) * MSS; }

static int may_send(void) { return inflight() + MSS <= answer.cwnd && tail - head < RING; }

static void send_packet(void) {
  struct packet *p = &ring[tail % RING];
  ackademy_rate_sent(&rate, now, inflight(), MSS, lost, &p->sent);
  tail++;
  p->sent_at = now;
  p->acked_at = 0;
  if (link_free < now) link_free = now;
  if (link_free - now <= BUFFER * PER_PACKET) {
    link_free += PER_PACKET;
    p->acked_at = link_free + RTT;
  }
  if (answer.pacing_rate != ACKADEMY_NONE) next_send = now + MSS * 8 * 1000000000ull / answer.pacing_rate;
}

/* The packets before `until` are lost. */
static void lose(uint64_t until, uint64_t kind) {
  const struct packet *newest = &ring[(until - 1) % RING];
  ackademy_loss loss = {.now = now, .sent_at = newest->sent_at, .lost = (until - head) * MSS, .inflight = inflight()};
  if (kind == ACKADEMY_GAP && newest->sent_at < recovery_end) kind = ACKADEMY_MORE;
  if (kind != ACKADEMY_MORE) recovery_end = now;
  loss.kind = kind;
  lost += loss.lost;
  head = until;
  ackademy_on_loss(controller, 0, &loss, &answer);
}

static void acknowledge(uint64_t index) {
  const struct packet *p = &ring[index % RING];
  const uint64_t full = inflight() + MSS > answer.cwnd, rtt = now - p->sent_at;
  if (index > head) lose(index, ACKADEMY_GAP);
  ackademy_ack ack = {.now = now, .sent_at = p->sent_at, .acked = MSS, .prior_inflight = inflight()};
  head = index + 1;
  srtt = srtt ? srtt - srtt / 8 + rtt / 8 : rtt;
  if (rtt < min_rtt) min_rtt = rtt;
  ack.rtt = ack.rtt_max = ack.batch_rtt_min = rtt;
  ack.srtt = srtt;
  ack.min_rtt = min_rtt;
  ack.inflight = inflight();
  ack.recovering = p->sent_at < recovery_end;
  ack.cwnd_limited = full;
  ackademy_rate_delivered(&rate, now, MSS);
  ackademy_rate_sample(&rate, &p->sent, lost, &ack);
  ackademy_on_ack(controller, 0, &ack, &answer);
}

int main(int argc, char **argv) {
  const ackademy_flow flow = {.mss = MSS, .initial_cwnd = 10 * MSS, .initial_ssthresh = ACKADEMY_NONE, .start = now};
  uint64_t delivered = 0, waited = 0;
  char err[512];
  const unsigned abi = ackademy_abi();
  if (abi != ACKADEMY_ABI) return fprintf(stderr, "flow: the library has ABI %u; allowed is %u\n", abi, ACKADEMY_ABI), 2;
  controller = ackademy_new(argc > 1 ? argv[1] : "cubic", argc > 2 ? argv[2] : NULL, &flow, err, sizeof err);
  if (!controller) return fprintf(stderr, "flow: %s\n", err), 2;
  ackademy_control(controller, 0, &answer);
  while (now < END) {
    uint64_t next = head, at;
    while (next < tail && !ring[next % RING].acked_at) next++;
    at = next < tail ? ring[next % RING].acked_at : tail > head ? ring[head % RING].sent_at + 1000 * MS : ACKADEMY_NONE;
    const uint64_t event = at, send_at = may_send() ? next_send : ACKADEMY_NONE;
    if (send_at < at) at = send_at;
    if (answer.timer < at) at = answer.timer;
    if (at > now) now = at;
    if (at == answer.timer) {
      ackademy_on_timer(controller, 0, now, &answer);
    } else if (at == send_at) {
      send_packet();
    } else if (at == event && next < tail) {
      delivered += MSS;
      waited += now - ring[next % RING].sent_at - RTT;
      acknowledge(next);
    } else {
      lose(tail, ACKADEMY_TIMEOUT);
    }
  }
  printf("%.2f Mb/s, %.1f ms in the queue, %.2f %% lost, fell back: %d\n", delivered * 8e3 / (END - flow.start),
         delivered ? waited / 1e6 / (delivered / MSS) : 0.0, lost * 100.0 / (lost + delivered),
         ackademy_fell_back(controller, 0));
  ackademy_free(controller);
  return 0;
}
