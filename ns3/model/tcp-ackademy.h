// SPDX-License-Identifier: GPL-2.0-only
#ifndef TCP_ACKADEMY_H
#define TCP_ACKADEMY_H

#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/sequence-number.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-socket-state.h"

#include <ackademy.h>

#include <deque>
#include <string>
#include <utility>

namespace ns3 {

/// A controller of Ackademy, by its C library, in ns-3's TCP.
///
/// Attributes: Controller, a name in `ackademy list`; Parameters, its settings as name=value,...; Seed; Prr. The
/// controller is told times in nanoseconds and amounts of payload. A record is filled once per acknowledgement.
class TcpAckademy : public TcpCongestionOps {
  public:
    static TypeId GetTypeId();

    TcpAckademy() = default;
    /// As for every connection that a listening socket accepts: the settings are copied, nothing else.
    TcpAckademy(const TcpAckademy& other);
    TcpAckademy& operator=(const TcpAckademy&) = delete;
    ~TcpAckademy() override;

    /// One line that says why the library cannot be used; empty if it can.
    static std::string WhyUnusable();
    /// One line that says why a controller cannot be made; empty if it can.
    static std::string WhyRefused(const std::string& controller, const std::string& parameters);

    std::string GetName() const override;
    bool HasCongControl() const override;
    Ptr<TcpCongestionOps> Fork() override;
    void Init(Ptr<TcpSocketState> tcb) override;
    void CongestionStateSet(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCongState_t state) override;
    void CwndEvent(Ptr<TcpSocketState> tcb, const TcpSocketState::TcpCAEvent_t event) override;
    uint32_t GetSsThresh(Ptr<const TcpSocketState> tcb, uint32_t inflight) override;
    void CongControl(Ptr<TcpSocketState> tcb,
                     const TcpRateOps::TcpRateConnection& connection,
                     const TcpRateOps::TcpRateSample& sample) override;

    /// Whether CUBIC governs, because the controller failed.
    bool HasFallenBack() const;

  private:
    /// A new segment that left.
    struct Sent {
        SequenceNumber32 end;
        uint64_t at;
        uint64_t inflight; ///< with it
    };

    /// What is known of the packets that an acknowledgement delivers.
    struct Delivered {
        uint64_t newest_sent = 0; ///< when the newest of them was sent; 0 if unknown
        uint64_t rtt = 0;         ///< of that one; 0 for none
        uint64_t rtt_max = 0;     ///< of the oldest of them
        uint64_t inflight = 0;    ///< when the newest was sent, with it; 0 if unknown
        bool advances = false;    ///< the cumulative acknowledgement
    };

    void Begin(Ptr<TcpSocketState> tcb);
    void OnSent(SequenceNumber32 before, SequenceNumber32 now);
    Delivered Take(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateConnection& connection, uint64_t acked);
    ackademy_ack Record(Ptr<TcpSocketState> tcb,
                        const TcpRateOps::TcpRateConnection& connection,
                        const TcpRateOps::TcpRateSample& sample,
                        const Delivered& delivered) const;
    void Lose(uint64_t kind, uint64_t bytes, uint64_t flight);
    bool TellOfLosses(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateSample& sample);
    uint64_t LostSince(uint64_t sent_at) const;
    void Forget(uint64_t at);
    void Reduce(Ptr<TcpSocketState> tcb, uint64_t acked, uint64_t extra);
    void Apply(Ptr<TcpSocketState> tcb);
    void SetTimer(Ptr<TcpSocketState> tcb);
    void OnTimer(Ptr<TcpSocketState> tcb);

    std::string m_name = "cubic";
    std::string m_parameters;
    uint64_t m_seed = 1;
    bool m_prr = true;

    ackademy_controller* m_controller = nullptr;
    ackademy_answer m_answer{};
    bool m_begun = false;
    EventId m_timer;
    uint64_t m_timerAt = ACKADEMY_NONE;

    TcpSocketState* m_state = nullptr; ///< of the socket that owns this
    std::deque<Sent> m_sent;           ///< not cumulatively acknowledged
    SequenceNumber32 m_acknowledged;
    Time m_newestSent;
    uint64_t m_srtt = 0;
    uint64_t m_minRtt = 0;

    /// When bytes were declared lost, and how many had been until then.
    std::deque<std::pair<uint64_t, uint64_t>> m_losses;
    uint64_t m_lost = 0, m_lostBefore = 0;
    uint64_t m_lostAtEntry = 0; ///< told already when recovery began at this acknowledgement
    bool m_enters = false;      ///< recovery begins
    bool m_timedOut = false;    ///< the time-out at hand has been told
    bool m_inLoss = false;      ///< the state at the acknowledgement before

    bool m_reducing = false;
    bool m_opens = false; ///< the reduction has just begun
    ackademy_prr m_reduction{};
    uint64_t m_inflightBefore = 0;
};

} // namespace ns3

#endif
