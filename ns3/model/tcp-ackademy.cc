// SPDX-License-Identifier: GPL-2.0-only
#include "tcp-ackademy.h"

#include "ns3/boolean.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>

namespace ns3 {

NS_OBJECT_ENSURE_REGISTERED(TcpAckademy);

namespace {

/// Largest window that ns-3's 32 bits hold with room for what is in flight.
constexpr uint64_t CWND_MAX = UINT32_MAX / 2;

uint64_t
NowNs() {
    return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
}

[[noreturn]] void
Refuse(const std::string& why) {
    std::cerr << "TcpAckademy: " << why << std::endl;
    std::exit(2);
}

ackademy_flow
FlowOf(Ptr<const TcpSocketState> tcb, uint64_t seed) {
    const uint64_t mss = tcb->m_segmentSize;
    const uint64_t ssthresh = tcb->m_initialSsThresh;
    ackademy_flow flow{};
    flow.mss = mss;
    flow.initial_cwnd = std::max<uint64_t>(tcb->m_initialCWnd, 1) * mss; // m_initialCWnd counts segments
    flow.initial_ssthresh = ssthresh == UINT32_MAX ? ACKADEMY_NONE : std::max(ssthresh, mss);
    flow.start = NowNs();
    flow.seed = seed;
    return flow;
}

} // namespace

TypeId
TcpAckademy::GetTypeId() {
    static TypeId id =
        TypeId("ns3::TcpAckademy")
            .SetParent<TcpCongestionOps>()
            .SetGroupName("Internet")
            .AddConstructor<TcpAckademy>()
            .AddAttribute("Controller",
                          "Name of the controller, as `ackademy list` prints it; `policy` for a learned one.",
                          StringValue("cubic"),
                          MakeStringAccessor(&TcpAckademy::m_name),
                          MakeStringChecker())
            .AddAttribute("Parameters",
                          "Settings of the controller: name=value, separated by commas.",
                          StringValue(""),
                          MakeStringAccessor(&TcpAckademy::m_parameters),
                          MakeStringChecker())
            .AddAttribute("Seed",
                          "Of the controller's own random choices.",
                          UintegerValue(1),
                          MakeUintegerAccessor(&TcpAckademy::m_seed),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute("Prr",
                          "Reduce proportionally in recovery (RFC 9937), unless the controller sets a pacing rate.",
                          BooleanValue(true),
                          MakeBooleanAccessor(&TcpAckademy::m_prr),
                          MakeBooleanChecker());
    return id;
}

TcpAckademy::TcpAckademy(const TcpAckademy& other)
    : TcpCongestionOps(other),
      m_name(other.m_name),
      m_parameters(other.m_parameters),
      m_seed(other.m_seed),
      m_prr(other.m_prr) {}

TcpAckademy::~TcpAckademy() {
    m_timer.Cancel();
    ackademy_free(m_controller);
}

std::string
TcpAckademy::WhyUnusable() {
    if (ackademy_abi() != ACKADEMY_ABI) {
        return "libackademy has ABI " + std::to_string(ackademy_abi()) + "; allowed: " + std::to_string(ACKADEMY_ABI) +
               ", for which this program was built";
    }
    const std::pair<uint32_t, size_t> sizes[] = {{ACKADEMY_RECORD_FLOW, sizeof(ackademy_flow)},
                                                 {ACKADEMY_RECORD_ACK, sizeof(ackademy_ack)},
                                                 {ACKADEMY_RECORD_LOSS, sizeof(ackademy_loss)},
                                                 {ACKADEMY_RECORD_ANSWER, sizeof(ackademy_answer)},
                                                 {ACKADEMY_RECORD_PRR, sizeof(ackademy_prr)}};
    for (const auto& [record, size] : sizes) {
        if (ackademy_sizeof(record) != size) {
            return "record " + std::to_string(record) + " of libackademy has " +
                   std::to_string(ackademy_sizeof(record)) + " bytes; allowed: " + std::to_string(size);
        }
    }
    return "";
}

std::string
TcpAckademy::WhyRefused(const std::string& controller, const std::string& parameters) {
    ackademy_flow flow{};
    flow.mss = 1448;
    flow.initial_cwnd = 10 * flow.mss;
    flow.initial_ssthresh = ACKADEMY_NONE;
    char why[512] = "";
    ackademy_controller* made = ackademy_new(controller.c_str(), parameters.c_str(), &flow, why, sizeof why);
    ackademy_free(made);
    return made ? "" : why;
}

std::string
TcpAckademy::GetName() const {
    return "TcpAckademy";
}

bool
TcpAckademy::HasCongControl() const {
    return true;
}

Ptr<TcpCongestionOps>
TcpAckademy::Fork() {
    return CopyObject<TcpAckademy>(this);
}

bool
TcpAckademy::HasFallenBack() const {
    return m_controller && ackademy_fell_back(m_controller, 0) == 1;
}

// The socket's attributes may change until its first packet, so the controller is made anew then.
void
TcpAckademy::Init(Ptr<TcpSocketState> tcb) {
    const std::string why = WhyUnusable();
    if (!why.empty()) {
        Refuse(why);
    }
    const ackademy_flow flow = FlowOf(tcb, m_seed);
    char error[512] = "";
    ackademy_free(m_controller);
    m_controller = ackademy_new(m_name.c_str(), m_parameters.c_str(), &flow, error, sizeof error);
    if (!m_controller) {
        Refuse(error);
    }
}

void
TcpAckademy::Begin(Ptr<TcpSocketState> tcb) {
    const ackademy_flow flow = FlowOf(tcb, m_seed);
    ackademy_controller* made = ackademy_again(m_controller, &flow);
    if (!made) {
        Refuse("a segment size of " + std::to_string(flow.mss) + " bytes: allowed is 64 to 65535");
    }
    ackademy_free(m_controller);
    m_controller = made;
    m_begun = true;
    m_acknowledged = tcb->m_lastAckedSeq;
    m_state = PeekPointer(tcb);
    tcb->TraceConnectWithoutContext("HighestSequence", MakeCallback(&TcpAckademy::OnSent, this));
    ackademy_control(m_controller, 0, &m_answer);
    Apply(tcb);
}

void
TcpAckademy::OnSent(SequenceNumber32, SequenceNumber32 now) {
    m_sent.push_back({now, NowNs(), m_state->m_bytesInFlight.Get() + m_state->m_segmentSize});
}

void
TcpAckademy::CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event) {
    if (event == TcpSocketState::CA_EVENT_TX_START && !m_begun) {
        Begin(tcb);
    }
    // ns-3 asks for a threshold at the first time-out of a segment alone.
    if (event == TcpSocketState::CA_EVENT_LOSS) {
        if (!m_timedOut) {
            Lose(ACKADEMY_TIMEOUT_AGAIN, tcb->m_segmentSize, tcb->m_segmentSize);
        }
        m_timedOut = false;
    }
}

void
TcpAckademy::CongestionStateSet(Ptr<TcpSocketState>, const TcpSocketState::TcpCongState_t state) {
    m_enters = state == TcpSocketState::CA_RECOVERY;
    if (state == TcpSocketState::CA_OPEN || state == TcpSocketState::CA_LOSS) {
        m_reducing = false;
    }
}

// ns-3 calls it when recovery begins, after CongestionStateSet; at an ECN echo; and at a time-out.
uint32_t
TcpAckademy::GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t inflight) {
    const uint64_t outstanding = tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq;
    const uint64_t flight = std::min(outstanding, m_answer.cwnd);
    const bool echoed = tcb->m_ecnState.Get() == TcpSocketState::ECN_ECE_RCVD;
    if (m_enters || echoed) {
        m_lostAtEntry = m_enters ? tcb->m_segmentSize : 0;
        m_reducing = m_opens = m_enters;
        ackademy_prr_enter(&m_reduction, flight);
        Lose(ACKADEMY_GAP, m_lostAtEntry, flight);
    } else {
        m_timedOut = true;
        Lose(ACKADEMY_TIMEOUT, std::max<uint64_t>(inflight, tcb->m_segmentSize), flight);
    }
    m_enters = false;
    const uint64_t threshold = m_answer.ssthresh == ACKADEMY_NONE ? m_answer.cwnd : m_answer.ssthresh;
    return static_cast<uint32_t>(std::clamp<uint64_t>(threshold, tcb->m_segmentSize, CWND_MAX));
}

void
TcpAckademy::Lose(uint64_t kind, uint64_t bytes, uint64_t flight) {
    ackademy_loss loss{};
    loss.now = NowNs();
    if (m_sent.empty()) {
        loss.sent_at = loss.now - std::min(m_srtt, loss.now);
    } else { // what is missing at the cumulative acknowledgement was sent first
        loss.sent_at = m_sent.front().at;
        loss.tx_inflight = m_sent.front().inflight;
    }
    m_lost += bytes;
    m_losses.emplace_back(loss.now, m_lost);
    loss.lost = bytes;
    loss.lost_since = LostSince(loss.sent_at);
    loss.inflight = flight;
    loss.kind = kind;
    ackademy_on_loss(m_controller, 0, &loss, &m_answer);
}

uint64_t
TcpAckademy::LostSince(uint64_t sent_at) const {
    uint64_t before = m_lostBefore;
    for (const auto& [at, lost] : m_losses) {
        if (at > sent_at) {
            break;
        }
        before = lost;
    }
    return m_lost - before;
}

// Nothing is asked of earlier times than this.
void
TcpAckademy::Forget(uint64_t at) {
    while (!m_losses.empty() && m_losses.front().first <= at) {
        m_lostBefore = m_losses.front().second;
        m_losses.pop_front();
    }
}

TcpAckademy::Delivered
TcpAckademy::Take(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateConnection& connection, uint64_t acked) {
    Delivered found;
    const uint64_t now = NowNs();
    const SequenceNumber32 acknowledged = tcb->m_lastAckedSeq;
    const auto advance = acknowledged - m_acknowledged;
    m_acknowledged = acknowledged;
    found.advances = advance > 0;
    uint64_t oldest = 0;
    while (!m_sent.empty() && m_sent.front().end <= acknowledged) {
        found.newest_sent = m_sent.front().at;
        found.inflight = m_sent.front().inflight;
        oldest = oldest ? oldest : found.newest_sent;
        m_sent.pop_front();
    }
    const auto state = tcb->m_congState.Get();
    const bool in_order = state == TcpSocketState::CA_OPEN && found.advances && uint64_t(advance) == acked;
    if (!in_order) {
        // Something was sent again or selectively acknowledged: ns-3's rate sampler knows what was delivered.
        const bool is_new = connection.m_firstSentTime != m_newestSent;
        oldest = found.newest_sent = is_new ? uint64_t(connection.m_firstSentTime.GetNanoSeconds()) : 0;
        found.inflight = 0;
    }
    m_newestSent = connection.m_firstSentTime;
    if (found.newest_sent) {
        const uint64_t rtt = now - std::min(found.newest_sent, now);
        // Shorter than possible: the acknowledgement is of an earlier copy (RFC 8985 section 6.2).
        if (in_order || rtt >= m_minRtt) {
            found.rtt = rtt;
            found.rtt_max = now - std::min(oldest, now);
        }
    }
    return found;
}

ackademy_ack
TcpAckademy::Record(Ptr<TcpSocketState> tcb,
                    const TcpRateOps::TcpRateConnection& connection,
                    const TcpRateOps::TcpRateSample& sample,
                    const Delivered& delivered) const {
    ackademy_ack ack{};
    ack.now = NowNs();
    ack.rtt = ack.batch_rtt_min = delivered.rtt;
    ack.rtt_max = delivered.rtt_max;
    ack.sent_at = delivered.newest_sent ? delivered.newest_sent : ack.now - std::min(m_srtt, ack.now);
    ack.srtt = m_srtt;
    ack.min_rtt = m_minRtt;
    ack.acked = sample.m_ackedSacked;
    ack.inflight = tcb->m_bytesInFlight.Get();
    ack.prior_inflight = ack.inflight + ack.acked;
    ack.delivered = connection.m_delivered;
    ack.lost_since = LostSince(ack.sent_at);
    ack.app_limited = sample.m_isAppLimited;
    if (sample.m_delivered > 0) {
        ack.delivered_since = sample.m_delivered;
        // All that was sent before has arrived or is lost, unless packets overtake each other.
        ack.tx_inflight = delivered.inflight ? delivered.inflight : ack.delivered_since + ack.lost_since;
        const uint64_t acking = (Simulator::Now() - sample.m_priorTime).GetNanoSeconds();
        const uint64_t sending = std::max<int64_t>(sample.m_sendElapsed.GetNanoSeconds(), 0);
        const uint64_t interval = std::max(acking, sending);
        if (sample.m_priorTime.IsStrictlyPositive() && interval && interval >= m_minRtt) {
            ack.delivery_rate = static_cast<uint64_t>(8e9 * sample.m_delivered / interval);
        }
    }
    const auto state = tcb->m_congState.Get();
    ack.recovering = state != TcpSocketState::CA_OPEN && state != TcpSocketState::CA_CWR;
    ack.cwnd_limited = sample.m_priorInFlight + tcb->m_segmentSize > tcb->m_cWnd.Get();
    return ack;
}

// What left the network and was not delivered is lost. A time-out has told of all that was there.
bool
TcpAckademy::TellOfLosses(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateSample& sample) {
    const uint64_t left = tcb->m_bytesInFlight.Get() + uint64_t(sample.m_ackedSacked);
    const bool in_loss = tcb->m_congState.Get() == TcpSocketState::CA_LOSS;
    const uint64_t lost = in_loss || m_inLoss || sample.m_priorInFlight < left ? 0 : sample.m_priorInFlight - left;
    const uint64_t further = lost > m_lostAtEntry ? lost - m_lostAtEntry : 0;
    const bool tells = further > 0 || m_lostAtEntry > 0;
    m_inLoss = in_loss;
    m_lostAtEntry = 0;
    if (further > 0) {
        const uint64_t outstanding = tcb->m_highTxMark.Get() - tcb->m_lastAckedSeq;
        Lose(ACKADEMY_MORE, further, std::min(outstanding, m_answer.cwnd));
    }
    return tells;
}

void
TcpAckademy::CongControl(Ptr<TcpSocketState> tcb,
                         const TcpRateOps::TcpRateConnection& connection,
                         const TcpRateOps::TcpRateSample& sample) {
    if (!m_begun) {
        return; // of the handshake
    }
    const Delivered delivered = Take(tcb, connection, sample.m_ackedSacked);
    if (delivered.rtt) {
        m_srtt = m_srtt ? (7 * m_srtt + delivered.rtt) / 8 : delivered.rtt;
        m_minRtt = m_minRtt ? std::min(m_minRtt, delivered.rtt) : delivered.rtt;
    }
    const bool is_safe = !TellOfLosses(tcb, sample) && delivered.advances;
    if (m_reducing && sample.m_priorInFlight > m_inflightBefore) {
        ackademy_prr_sent(&m_reduction, sample.m_priorInFlight - m_inflightBefore);
    }
    if (sample.m_ackedSacked > 0) {
        const ackademy_ack ack = Record(tcb, connection, sample, delivered);
        Forget(m_sent.empty() ? ack.sent_at : std::min(ack.sent_at, m_sent.front().at));
        ackademy_on_ack(m_controller, 0, &ack, &m_answer);
    }
    if (m_answer.timer <= NowNs()) {
        ackademy_on_timer(m_controller, 0, NowNs(), &m_answer);
    }
    Reduce(tcb, sample.m_ackedSacked, is_safe ? tcb->m_segmentSize : 0);
    Apply(tcb);
    m_inflightBefore = tcb->m_bytesInFlight.Get();
}

void
TcpAckademy::Reduce(Ptr<TcpSocketState> tcb, uint64_t acked, uint64_t extra) {
    if (!m_reducing) {
        return;
    }
    const uint64_t inflight = tcb->m_bytesInFlight.Get();
    ackademy_prr_acked(&m_reduction, acked, inflight, m_answer.cwnd, extra);
    if (m_opens) {
        // The first retransmission, which has just left, is not subject to the bound.
        m_reduction.budget = std::max<uint64_t>(m_reduction.budget, tcb->m_segmentSize);
        m_opens = false;
    }
}

void
TcpAckademy::Apply(Ptr<TcpSocketState> tcb) {
    const bool paces = m_answer.pacing_rate != ACKADEMY_NONE;
    uint64_t cwnd = m_answer.cwnd;
    if (m_reducing && m_prr && !paces) {
        cwnd = tcb->m_bytesInFlight.Get() + m_reduction.budget;
    }
    cwnd = std::clamp<uint64_t>(cwnd, tcb->m_segmentSize, CWND_MAX);
    tcb->m_cWnd = static_cast<uint32_t>(cwnd);
    tcb->m_cWndInfl = tcb->m_cWnd.Get();
    if (m_answer.ssthresh != ACKADEMY_NONE) {
        tcb->m_ssThresh = static_cast<uint32_t>(std::min(m_answer.ssthresh, CWND_MAX));
    }
    tcb->m_pacing = tcb->m_paceInitialWindow = paces;
    if (paces) {
        tcb->m_pacingRate = DataRate(std::max<uint64_t>(m_answer.pacing_rate, 1000));
    }
    SetTimer(tcb);
}

void
TcpAckademy::SetTimer(Ptr<TcpSocketState> tcb) {
    if (m_answer.timer == m_timerAt) {
        return;
    }
    m_timer.Cancel();
    m_timerAt = m_answer.timer;
    if (m_timerAt != ACKADEMY_NONE) {
        const uint64_t now = NowNs();
        const Time after = NanoSeconds(m_timerAt - std::min(m_timerAt, now));
        m_timer = Simulator::Schedule(after, &TcpAckademy::OnTimer, this, tcb);
    }
}

// ns-3 sends at the next acknowledgement, or when its pacing timer expires: a congestion control cannot send.
void
TcpAckademy::OnTimer(Ptr<TcpSocketState> tcb) {
    m_timerAt = ACKADEMY_NONE;
    ackademy_on_timer(m_controller, 0, NowNs(), &m_answer);
    Apply(tcb);
}

} // namespace ns3
