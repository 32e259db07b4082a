/* A guest that keeps a window of 20 packets and fails at the call that FAIL_AT says. */
#include "ackademy.h"
#include <stdlib.h>

#ifndef FAIL_AT
#define FAIL_AT UINT64_MAX
#endif
#ifndef REPORTED_ABI
#define REPORTED_ABI ACKADEMY_ABI
#endif

struct ackademy_controller {
  uint64_t cwnd, calls;
};
static int say(ackademy_controller *c, ackademy_answer *answer) {
  *answer = (ackademy_answer){c->cwnd, ACKADEMY_NONE, ACKADEMY_NONE, ACKADEMY_NONE};
  return c->calls++ == FAIL_AT ? ACKADEMY_FELL_BACK : ACKADEMY_OK;
}
uint32_t ackademy_abi(void) { return REPORTED_ABI; }
size_t ackademy_sizeof(uint32_t record) {
  const size_t sizes[] = {sizeof(ackademy_flow), sizeof(ackademy_ack), sizeof(ackademy_loss), sizeof(ackademy_send),
                          sizeof(ackademy_answer)};
  return sizes[record];
}
const char *ackademy_names(void) { return "fixed"; }
ackademy_controller *ackademy_new(const char *name, const char *settings, const ackademy_flow *flow, char *err,
                                  size_t err_len) {
  (void)name, (void)settings, (void)err, (void)err_len;
  ackademy_controller *c = calloc(1, sizeof *c);
  c->cwnd = 20 * flow->mss;
  return c;
}
void ackademy_free(ackademy_controller *c) { free(c); }
int ackademy_on_ack(ackademy_controller *c, uint32_t subflow, const ackademy_ack *ack, ackademy_answer *answer) {
  (void)subflow, (void)ack;
  return say(c, answer);
}
int ackademy_on_loss(ackademy_controller *c, uint32_t subflow, const ackademy_loss *loss, ackademy_answer *answer) {
  (void)subflow, (void)loss;
  return say(c, answer);
}
#ifndef WITHOUT_CONTROL
int ackademy_control(ackademy_controller *c, uint32_t subflow, ackademy_answer *answer) {
  (void)subflow;
  return say(c, answer);
}
#endif
