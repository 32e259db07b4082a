/* Ackademy's congestion controllers for C and C++. Build it with `make c`, link with `pkg-config --libs ackademy`.
 *
 * A program creates a controller, tells it of acknowledgements and losses, and obeys the answer. Records hold only
 * 64-bit numbers. Times and spans are nanoseconds since any moment, amounts are bytes, rates are bits per second.
 * Flags are 0 or 1.
 *
 * A controller governs one or more subflows. Subflow 0 is there from the start, and the only one of a plain flow.
 * Only one thread at a time may use a controller; several controllers may be used by several threads.
 *
 * A call that fails with ACKADEMY_BAD_ARGUMENT changes nothing. After ACKADEMY_FELL_BACK the flow goes on under CUBIC,
 * and the answer is already CUBIC's. */
#ifndef ACKADEMY_H
#define ACKADEMY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a record or a function does. */
#define ACKADEMY_ABI 1u

/* No threshold, no limit of the rate, no timer. */
#define ACKADEMY_NONE UINT64_MAX

/* What functions that return an int return. */
enum {
  ACKADEMY_OK = 0,
  ACKADEMY_HOLD = 1,          /* of ackademy_on_send: keep the packet back until the next answer */
  ACKADEMY_BAD_ARGUMENT = -1, /* NULL, no such subflow, or a number out of range */
  ACKADEMY_FELL_BACK = -2     /* the controller panicked: CUBIC governs from now on */
};

typedef struct ackademy_controller ackademy_controller;

/* What is known of a flow before its first packet. */
typedef struct {
  uint64_t mss;              /* a full packet, 64 to 65535 */
  uint64_t initial_cwnd;     /* mss to 2^30 */
  uint64_t initial_ssthresh; /* mss or more; ACKADEMY_NONE for none */
  uint64_t paces;            /* flag: the sender paces by itself where the controller sets no rate */
  uint64_t start;            /* when the flow starts, on the clock of `now`; below 2^62 */
  uint64_t seed;             /* of the controller's own randomness */
} ackademy_flow;

/* One or more acknowledgements that delivered something new. docs/reference/records.md describes each field. */
typedef struct {
  uint64_t now;
  uint64_t sent_at; /* when the newest packet that is delivered was sent */
  uint64_t rtt;     /* sample of that packet; 0 for none */
  uint64_t srtt;
  uint64_t min_rtt;
  uint64_t rtt_max;       /* of the samples of this record */
  uint64_t batch_rtt_min; /* of the samples of this record */
  uint64_t acked;         /* newly delivered */
  uint64_t ce_marked;     /* part of `acked` */
  uint64_t inflight;      /* after this acknowledgement */
  uint64_t prior_inflight;
  uint64_t delivered; /* since the connection began */
  uint64_t delivery_rate;
  uint64_t tx_inflight;     /* in flight just after the newest packet was sent, with it; 0 if unknown */
  uint64_t delivered_since; /* since that packet was sent; 0 if unknown */
  uint64_t lost_since;      /* since that packet was sent */
  uint64_t app_limited;     /* flag */
  uint64_t recovering;      /* flag: a loss is being repaired */
  uint64_t cwnd_limited;    /* flag: the window was full */
} ackademy_ack;

/* Kinds of loss. */
enum {
  ACKADEMY_GAP = 0,          /* first loss of an episode */
  ACKADEMY_MORE = 1,         /* further losses of the same episode */
  ACKADEMY_TIMEOUT = 2,      /* the retransmission timer expired */
  ACKADEMY_DEFLATE = 3,      /* a partial acknowledgement without SACK */
  ACKADEMY_IDLE = 4,         /* the flow idled longer than its time-out */
  ACKADEMY_SPURIOUS = 5,     /* the latest reduction is to be undone */
  ACKADEMY_TIMEOUT_AGAIN = 6 /* the timer expired for what was answered before */
};

/* Packets were declared lost. */
typedef struct {
  uint64_t now;
  uint64_t sent_at; /* when the newest of the lost packets was sent */
  uint64_t lost;    /* newly declared lost */
  uint64_t inflight;
  uint64_t tx_inflight; /* in flight just after that packet was sent, with it; 0 if unknown */
  uint64_t lost_since;  /* since that packet was sent, with `lost`; 0 if unknown */
  uint64_t app_limited; /* flag */
  uint64_t kind;
} ackademy_loss;

/* A packet is about to leave. */
typedef struct {
  uint64_t now;
  uint64_t size;
  uint64_t inflight;       /* before this packet */
  uint64_t retransmission; /* flag */
  uint64_t order;          /* its place among the packets not cumulatively acknowledged, from 1 */
} ackademy_send;

/* What became of a packet. */
enum {
  ACKADEMY_PACKET_SENT = 0,
  ACKADEMY_PACKET_ACKED = 1,    /* told before the ackademy_ack that counts it */
  ACKADEMY_PACKET_LOST = 2,     /* told before the ackademy_loss that counts it */
  ACKADEMY_PACKET_DISCARDED = 3 /* no longer in flight, neither delivered nor lost */
};

/* One packet, for controllers that want to know of each. */
typedef struct {
  uint64_t now;
  uint64_t number; /* packets of a flow are counted from 0 as they are sent */
  uint64_t sent_at;
  uint64_t size;
  uint64_t kind;
} ackademy_packet;

/* What is allowed until the next answer. */
typedef struct {
  uint64_t cwnd;
  uint64_t pacing_rate; /* ACKADEMY_NONE: not paced */
  uint64_t ssthresh;    /* ACKADEMY_NONE: none */
  uint64_t timer;       /* when to call ackademy_on_timer; ACKADEMY_NONE: never */
} ackademy_answer;

/* A sampler of delivery rates, and what it remembers of a packet: zeros at the start, then not to be touched. */
typedef struct {
  uint64_t opaque[4];
} ackademy_rate;
typedef struct {
  uint64_t opaque[4];
} ackademy_sent;

/* One reduction by PRR (RFC 9937): ackademy_prr_enter fills it. A program may raise or lower the budget: the first
 * retransmission is not subject to it. */
typedef struct {
  uint64_t recover_fs; /* in flight when the reduction began */
  uint64_t delivered;  /* since then */
  uint64_t out;        /* sent since then */
  uint64_t budget;     /* may be sent now; the window is what is in flight and this */
} ackademy_prr;

/* Of the library that runs: ACKADEMY_ABI, and the size of a record (0 for an unknown number). */
enum {
  ACKADEMY_RECORD_FLOW,
  ACKADEMY_RECORD_ACK,
  ACKADEMY_RECORD_LOSS,
  ACKADEMY_RECORD_SEND,
  ACKADEMY_RECORD_ANSWER,
  ACKADEMY_RECORD_RATE,
  ACKADEMY_RECORD_SENT,
  ACKADEMY_RECORD_PRR,
  ACKADEMY_RECORD_PACKET
};
uint32_t ackademy_abi(void);
size_t ackademy_sizeof(uint32_t record);

/* The names of its controllers, separated by commas. */
const char *ackademy_names(void);

/* A controller by its name in `ackademy list`. `settings` is such as "beta=0.8,hystart=off", or NULL; values with
 * commas are not possible. Names of files are relative to the working directory. If there is no such controller, the
 * answer is NULL, and `err`, unless NULL, holds one line that names what is wrong and what is allowed. */
ackademy_controller *ackademy_new(const char *name, const char *settings, const ackademy_flow *flow, char *err,
                                  size_t err_len);

/* A fresh controller with the same settings; nothing learned or measured is copied. `flow` NULL: for the same flow as
 * the first one's subflow 0. NULL if the flow is not allowed. */
ackademy_controller *ackademy_again(const ackademy_controller *controller, const ackademy_flow *flow);

/* NULL is allowed. */
void ackademy_free(ackademy_controller *controller);

/* A further subflow, numbered below 65536, of a connection. Subflow 0 belongs to connection 0. */
int ackademy_join(ackademy_controller *controller, uint32_t subflow, uint32_t connection, const ackademy_flow *flow);
int ackademy_leave(ackademy_controller *controller, uint32_t subflow);

/* What happened; `answer` may be NULL. */
int ackademy_on_ack(ackademy_controller *controller, uint32_t subflow, const ackademy_ack *ack,
                    ackademy_answer *answer);
int ackademy_on_loss(ackademy_controller *controller, uint32_t subflow, const ackademy_loss *loss,
                     ackademy_answer *answer);
int ackademy_on_send(ackademy_controller *controller, uint32_t subflow, const ackademy_send *send,
                     ackademy_answer *answer);
/* Only if the controller wants packets (1; else 0). What it changes is in the next answer. */
int ackademy_on_packet(ackademy_controller *controller, uint32_t subflow, const ackademy_packet *packet);
int ackademy_wants_packets(const ackademy_controller *controller, uint32_t subflow);
int ackademy_on_timer(ackademy_controller *controller, uint32_t subflow, uint64_t now, ackademy_answer *answer);

/* The present answer, such as the first. */
int ackademy_control(ackademy_controller *controller, uint32_t subflow, ackademy_answer *answer);

/* 1 if CUBIC governs the subflow after a panic or an invalid action, else 0. */
int ackademy_fell_back(const ackademy_controller *controller, uint32_t subflow);

/* For senders without delivery rates of their own: tell each packet that leaves, each delivery, and that the
 * application has nothing to send; then a sample fills an ackademy_ack whose sent_at and min_rtt are filled. It sets
 * delivered, delivery_rate, tx_inflight, delivered_since, lost_since and app_limited. `lost` counts all bytes declared
 * lost so far. */
int ackademy_rate_sent(ackademy_rate *rate, uint64_t now, uint64_t inflight, uint64_t size, uint64_t lost,
                       ackademy_sent *sent);
int ackademy_rate_delivered(ackademy_rate *rate, uint64_t now, uint64_t bytes);
int ackademy_rate_app_limited(ackademy_rate *rate, uint64_t inflight);
int ackademy_rate_sample(ackademy_rate *rate, const ackademy_sent *sent, uint64_t lost, ackademy_ack *ack);

/* For senders without PRR: a reduction begins at `flight` bytes in flight; then each acknowledgement and each packet
 * that leaves is told until recovery ends. `ssthresh` is the window to end at, the controller's cwnd. `extra` is a
 * packet if the acknowledgement advances the cumulative one and tells of no further loss, else 0. As in Linux, a flow
 * whose controller sets a pacing rate needs no PRR. */
int ackademy_prr_enter(ackademy_prr *prr, uint64_t flight);
int ackademy_prr_acked(ackademy_prr *prr, uint64_t delivered, uint64_t inflight, uint64_t ssthresh, uint64_t extra);
int ackademy_prr_sent(ackademy_prr *prr, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
