# A dumbbell in ns-2.35: K senders share one drop-tail link; prints one line of JSON.
#
#   ns dumbbell.tcl agent=TCP/Newreno flows=1 rate=10e6 rtt=0.150 buffer=50 duration=400
#
# Units are bits/s, seconds, packets and bytes. Every name in `defaults` is an argument.
# The defaults are the settings of the Remy scripts: 1210 + 50 = 1260 B on the wire, timestamps,
# a 0.1 ms clock tick, access links of 100 Mb/s, ns-2's own NewReno. docs/results/peers.md says why.

array set defaults {
    agent       TCP/Newreno
    flows       1
    rate        10e6
    rtt         0.150
    buffer      50
    queue       DropTail
    red_min     10
    red_max     30
    red_maxp    0.1
    red_weight  0.002
    red_wait    0
    duration    400
    payload     1210
    timestamps  1
    tick        1e-4
    access      100e6
    ack         40
    delack      0
    deflation   1
    patient     0
    iw          2
    window      100000
    minrto      0.2
    loss        0
    traffic     always
    on_bytes    10e6
    off_s       0.5
    spread      0
    starts      {}
    seed        1
    sample      1
    monitor     1
    trace       {}
    trace_s     10
}
# agent       TCP/Reno, TCP/Newreno, TCP/Sack1, or "TCP/Linux NAME" with NAME as in `select_ca`
# buffer      packets in the bottleneck, the one in service included
# queue       DropTail or RED, whose thresholds count the packets that wait; red_wait 0 spaces drops as
#             Floyd and Jacobson do, 1 (ns-2's default) leaves at least 1/p arrivals between two
# ack         bytes of an ACK before SACK options
# patient     1 restarts the timer on every partial ACK (newreno_changes1_ 0)
# traffic     always, or onoff: exponential bytes, exponential pause, the agent is kept; its timer runs
#             on in a pause, and expiring it sets the window to 1 and leaves ssthresh
# starts      start times, comma separated; otherwise uniform in [0, spread) from the seed
# sample      1 averages the sender's last RTT over in-order deliveries (costs CPU)
# monitor     1 counts drops and waiting time per flow (costs CPU)
# trace       file for the first trace_s seconds of flow 0, one event a line

proc read_arguments {argv} {
    global defaults opt
    array set opt [array get defaults]
    foreach argument $argv {
        set cut [string first = $argument]
        set key [string range $argument 0 [expr {$cut - 1}]]
        if {$cut < 1 || ![info exists defaults($key)]} {
            puts stderr "unknown argument `$argument'; known: [lsort [array names defaults]]"
            exit 2
        }
        set opt($key) [string range $argument [expr {$cut + 1}] end]
    }
}

# ---------------------------------------------------------------------------- topology

# All propagation is on the bottleneck, half of it in each direction; access links have none.
# Only the bottleneck can drop: every other queue has room for a hundred thousand packets.
proc build_network {} {
    global ns opt node bottleneck
    Queue set limit_ 100000
    set node(left) [$ns node]
    set node(right) [$ns node]
    set delay [expr {$opt(rtt) / 2.0}]
    if {$opt(queue) eq "RED"} { configure_red }
    $ns duplex-link $node(left) $node(right) $opt(rate) $delay DropTail
    if {$opt(queue) ne "DropTail"} {
        $ns simplex-link $node(left) $node(right) $opt(rate) $delay $opt(queue)
    }
    $ns queue-limit $node(left) $node(right) [bottleneck_limit]
    set bottleneck [$ns link $node(left) $node(right)]
    if {$opt(loss) > 0} { add_random_loss }
    if {$opt(monitor)} { add_monitor }
    for {set i 0} {$i < $opt(flows)} {incr i} {
        set node(s$i) [$ns node]
        set node(r$i) [$ns node]
        $ns duplex-link $node(s$i) $node(left) $opt(access) 0 DropTail
        $ns duplex-link $node(right) $node(r$i) $opt(access) 0 DropTail
    }
}

# RED counts what waits, DropTail the packet in service as well.
proc bottleneck_limit {} {
    global opt
    return [expr {$opt(queue) eq "RED" ? $opt(buffer) - 1 : $opt(buffer)}]
}

proc configure_red {} {
    global opt
    Queue/RED set thresh_ $opt(red_min)
    Queue/RED set maxthresh_ $opt(red_max)
    Queue/RED set linterm_ [expr {1.0 / $opt(red_maxp)}]
    Queue/RED set q_weight_ $opt(red_weight)
    Queue/RED set wait_ $opt(red_wait)
    Queue/RED set gentle_ 1
    Queue/RED set bytes_ 0
    Queue/RED set queue_in_bytes_ 0
    Queue/RED set mean_pktsize_ [wire_bytes]
}

# Behind the propagation delay, so that a lost packet has used its share of the link and is not
# counted as a queue drop.
proc add_random_loss {} {
    global ns opt bottleneck random_losses
    set model [new ErrorModel]
    set generator [new RNG]
    $generator seed [expr {7919 * $opt(seed) + 1}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $generator
    $model unit pkt
    $model set rate_ $opt(loss)
    $model ranvar $uniform
    $model drop-target [$ns set nullAgent_]
    set link [$bottleneck link]
    $model target [$link target]
    $link target $model
}

# One record per flow of arrivals, drops and the integral of the number waiting. ns-2 makes a record
# when a flow's first packet arrives; the override gives it an integrator and a place in `record`.
proc add_monitor {} {
    global ns bottleneck
    set monitor [$ns makeflowmon Fid]
    [$monitor classifier] proc unknown-flow {source destination flow} {
        set made [new QueueMonitor/ED/Flow]
        $made set-pkts-integrator [new Integrator]
        $self set-hash auto $source $destination $flow [$self installNext $made]
        set ::record($flow) $made
    }
    $ns attach-fmon $bottleneck $monitor
}

# ------------------------------------------------------------------------------- flows

Agent/TCP instproc done {} { transfer_done $self }

Class Meter -superclass Application
Meter instproc recv {bytes} {
    $self instvar sender_ ticks_ samples_
    set rtt [$sender_ set rtt_]
    if {$rtt > 0} {
        incr ticks_ $rtt
        incr samples_
    }
}

proc build_flow {i} {
    global ns opt node sender sink flow_of meter
    set kind [lindex $opt(agent) 0]
    set sender($i) [new Agent/$kind]
    set flow_of($sender($i)) $i
    configure_sender $sender($i)
    set sink($i) [new Agent/[sink_kind $kind]]
    $sink($i) set packetSize_ $opt(ack)
    $ns attach-agent $node(s$i) $sender($i)
    $ns attach-agent $node(r$i) $sink($i)
    $ns connect $sender($i) $sink($i)
    $sender($i) set fid_ $i
    if {$kind eq "TCP/Linux"} {
        $sink($i) set ts_echo_rfc1323_ true
        $ns at 0 "$sender($i) select_ca [lindex $opt(agent) 1]"
    }
    if {$opt(sample)} {
        set meter($i) [new Meter]
        $meter($i) set sender_ $sender($i)
        $meter($i) set ticks_ 0
        $meter($i) set samples_ 0
        $meter($i) attach-agent $sink($i)
        $meter($i) start
    }
}

proc sink_kind {kind} {
    global opt
    set name TCPSink
    if {$kind in {TCP/Sack1 TCP/Linux}} { append name /Sack1 }
    if {$opt(delack)} { append name /DelAck }
    return $name
}

proc configure_sender {tcp} {
    global opt
    $tcp set packetSize_ $opt(payload)
    $tcp set timestamps_ $opt(timestamps)
    $tcp set tcpTick_ $opt(tick)
    $tcp set window_ $opt(window)
    $tcp set windowInit_ $opt(iw)
    $tcp set minrto_ $opt(minrto)
    if {[lindex $opt(agent) 0] eq "TCP/Newreno"} {
        $tcp set partial_window_deflation_ $opt(deflation)
        $tcp set newreno_changes1_ [expr {!$opt(patient)}]
    }
}

# ----------------------------------------------------------------------------- traffic

proc schedule_starts {} {
    global ns opt start active offered_at generator
    set generator [new RNG]
    $generator seed $opt(seed)
    set given [split $opt(starts) ,]
    for {set i 0} {$i < $opt(flows)} {incr i} {
        if {$i < [llength $given]} {
            set start($i) [lindex $given $i]
        } else {
            set start($i) [expr {$opt(spread) * [$generator uniform 0 1]}]
        }
        set active($i) 0.0
        set offered_at($i) {}
        $ns at $start($i) "offer $i"
    }
}

proc offer {i} {
    global ns opt sender offered_at generator
    set offered_at($i) [$ns now]
    if {$opt(traffic) eq "always"} {
        $sender($i) send -1
        return
    }
    set bytes [$generator exponential $opt(on_bytes)]
    $sender($i) advanceby [expr {int(ceil($bytes / $opt(payload)))}]
}

# Called by ns-2 when the last byte offered has been acknowledged.
proc transfer_done {tcp} {
    global ns opt flow_of active offered_at generator
    set i $flow_of($tcp)
    set active($i) [expr {$active($i) + [$ns now] - $offered_at($i)}]
    set offered_at($i) {}
    $ns at [expr {[$ns now] + [$generator exponential $opt(off_s)]}] "offer $i"
}

# ------------------------------------------------------------------------------ result

# bytes_ is a 32-bit counter: read it often enough that it cannot wrap twice unseen.
proc count_delivered {} {
    global ns opt sink delivered counter
    for {set i 0} {$i < $opt(flows)} {incr i} {
        set now [expr {[$sink($i) set bytes_] & 0xffffffff}]
        incr delivered($i) [expr {($now - $counter($i)) & 0xffffffff}]
        set counter($i) $now
    }
    $ns at [expr {[$ns now] + 1.0}] count_delivered
}

proc finish {} {
    global ns opt delivered
    count_delivered
    set flows {}
    for {set i 0} {$i < $opt(flows)} {incr i} { lappend flows [flow_result $i] }
    set head "\"peer\":\"ns-2\",\"duration_s\":$opt(duration),\"wire_bytes\":[wire_bytes]"
    puts "{$head,[total_result],\"flows\":\[[join $flows ,]\]}"
    exit 0
}

proc wire_bytes {} {
    global opt
    return [expr {$opt(payload) + ($opt(timestamps) ? 50 : 40)}]
}

proc flow_result {i} {
    global ns opt sender delivered start active offered_at meter record
    if {$offered_at($i) ne {}} {
        set active($i) [expr {$active($i) + [$ns now] - $offered_at($i)}]
    }
    set tcp $sender($i)
    set out "\"start_s\":$start($i),\"active_s\":$active($i),\"delivered_bytes\":$delivered($i)"
    append out ",\"sent\":[$tcp set ndatapack_],\"retransmits\":[$tcp set nrexmitpack_]"
    append out ",\"timeouts\":[$tcp set nrexmit_],\"window_cuts\":[$tcp set ncwndcuts_]"
    set drops null
    set wait null
    if {[info exists record($i)]} {
        set drops [$record($i) set pdrops_]
        set wait [mean_wait_ms $record($i)]
    }
    set d null
    if {$opt(sample) && [$meter($i) set samples_] > 0} {
        set mean [expr {double([$meter($i) set ticks_]) / [$meter($i) set samples_] * $opt(tick)}]
        set d [expr {($mean - $opt(rtt)) * 1e3}]
    }
    append out ",\"drops\":$drops,\"wait_ms\":$wait,\"d_ms\":$d"
    return "{$out}"
}

# Little's law: the integral of the number waiting, over the number that left.
proc mean_wait_ms {flow} {
    set left [$flow set pdepartures_]
    set waiting [$flow get-pkts-integrator]
    $waiting newpoint [[Simulator instance] now] [$waiting set lasty_]
    return [expr {$left > 0 ? 1e3 * [$waiting set sum_] / $left : 0.0}]
}

proc total_result {} {
    global opt sender delivered record
    set bytes 0
    set sent 0
    set drops 0
    for {set i 0} {$i < $opt(flows)} {incr i} {
        incr bytes $delivered($i)
        incr sent [$sender($i) set ndatapack_]
        if {[info exists record($i)]} { incr drops [expr {int([$record($i) set pdrops_])}] }
    }
    return "\"delivered_bytes\":$bytes,\"sent\":$sent,\"drops\":[expr {$opt(monitor) ? $drops : {null}}]"
}

# ------------------------------------------------------------------------------- trace

# Flow 0 as its sender sees it; TIME is in seconds, a SEQ or ACKNO counts packets from 0.
#   send TIME SEQ new|rtx     handed to the access link
#   ack TIME ACKNO            reaches the sender, not yet handled
#   state TIME STATE          after that ACK has been handled and what it allowed has been sent
#   drop TIME SEQ             refused by the bottleneck queue
#   rto TIME STATE            the timer fired; comes before the packet it sends
#   fast TIME STATE           fast retransmit; comes before the packet it sends
#   idle TIME STATE           the timer fired while nothing was outstanding; told with the next packet
# STATE is cwnd ssthresh dupacks rtt_ticks srtt_ticks_times_8 rttvar_ticks_times_4 backoff rto_s
# next_seq max_seq.
proc start_trace {} {
    global ns opt node trace_file bottleneck seen_rto seen_cuts highest
    set trace_file [open $opt(trace) w]
    set seen_rto 0
    set seen_cuts 0
    set highest -1
    [$ns link $node(s0) $node(left)] trace-callback $ns on_sender_link
    [$ns link $node(left) $node(s0)] trace-callback $ns on_ack_link
    $bottleneck trace-callback $ns on_bottleneck
    $ns at $opt(trace_s) { close $trace_file; set trace_file {} }
}

proc write_event {line} {
    if {$::trace_file ne {}} { puts $::trace_file $line }
}

proc now_text {} { return [format %.9f [[Simulator instance] now]] }

# A line of an ns-2 trace: op time from to type size flags flow source destination seq id
proc on_sender_link {line} {
    global sender highest
    if {[lindex $line 0] ne "+"} return
    set seq [lindex $line 10]
    write_cuts $sender(0)
    set kind [expr {$seq > $highest ? "new" : "rtx"}]
    if {$seq > $highest} { set highest $seq }
    write_event "send [now_text] $seq $kind"
}

# A time-out or fast retransmit is seen at the first packet it sends.
proc write_cuts {tcp} {
    global seen_rto seen_cuts
    set rto [$tcp set nrexmit_]
    set cuts [$tcp set ncwndcuts_]
    if {$rto > $seen_rto} {
        write_event "rto [now_text] [sender_state $tcp]"
    } elseif {$cuts > $seen_cuts} {
        set name [expr {[$tcp set dupacks_] > 0 ? "fast" : "idle"}]
        write_event "$name [now_text] [sender_state $tcp]"
    }
    set seen_rto $rto
    set seen_cuts $cuts
}

proc on_ack_link {line} {
    if {[lindex $line 0] ne "r"} return
    write_event "ack [now_text] [lindex $line 10]"
    [Simulator instance] after 0 {write_event "state [now_text] [sender_state $::sender(0)]"}
}

proc sender_state {tcp} {
    set state {}
    foreach name {cwnd_ ssthresh_ dupacks_ rtt_ srtt_ rttvar_ backoff_} {
        lappend state [$tcp set $name]
    }
    lappend state [retransmission_timeout_s $tcp] [$tcp set t_seqno_] [$tcp set maxseq_]
    return [join $state " "]
}

# What the timer would be set to now. ns-2 keeps it in whole ticks and does not show it to Tcl.
proc retransmission_timeout_s {tcp} {
    global opt
    set smoothed [$tcp set srtt_]
    if {$smoothed == 0} { return 3.0 }
    set ticks [expr {(([$tcp set rttvar_] << 3) + $smoothed) >> 3}]
    set floored [expr {max($ticks * $opt(tick), $opt(minrto))}]
    return [format %.4f [expr {min($floored * [$tcp set backoff_], 60.0)}]]
}

proc on_bottleneck {line} {
    if {[lindex $line 0] eq "d"} { write_event "drop [now_text] [lindex $line 10]" }
}

# -------------------------------------------------------------------------------- main

read_arguments $argv
# One seed for ns-2's own draws (the phase of the sender's clock), one generator for ours.
ns-random $opt(seed)
set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
build_network
for {set i 0} {$i < $opt(flows)} {incr i} {
    build_flow $i
    set delivered($i) 0
    set counter($i) 0
}
if {$opt(trace) ne {}} { start_trace }
schedule_starts
$ns at 0.5 count_delivered
$ns at $opt(duration) finish
$ns run
