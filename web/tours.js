// Situations worth seeing: what to look at, and the controls that show it.
import { flow } from './state.js';

export const TOURS = [
  {
    id: 'start', title: 'CUBIC beside BBRv3',
    text: 'Two downloads share one 20 Mb/s link. CUBIC grows until the queue overflows, then backs off; BBRv3 sends at the rate that it measures. Who gets more, and how long do packets wait? Move a slider while they run.',
    state: {},
  },
  {
    id: 'bufferbloat', title: 'Bufferbloat',
    text: 'One CUBIC flow and a buffer of eight bandwidth-delay products. Throughput is full all the time, and every packet waits: the round trip grows from 40 to more than 300 ms. Choose FQ-CoDel as the queue, and the wait is gone.',
    state: { buffer: 8, flows: [flow('cubic')] },
  },
  {
    id: 'cubic-bbr', title: 'CUBIC against BBR',
    text: 'BBRv1 ignores loss. In a short buffer it takes most of the link from CUBIC; with a buffer of four or more bandwidth-delay products the shares turn around. Move the buffer to see where.',
    state: { buffer: 0.5, flows: [flow('cubic'), flow('bbr1')] },
  },
  {
    id: 'rtt', title: 'RTT unfairness',
    text: 'Three NewReno flows, with round trips of 40, 80 and 160 ms. Each adds a packet per round trip, so the nearest flow grows fastest and gets the largest share. Try own_queue in place of NewReno.',
    state: { buffer: 1, duration: 120, flows: [flow('new_reno'), flow('new_reno', { extra: 40 }), flow('new_reno', { extra: 120 })] },
  },
  {
    id: 'policer', title: 'A policer',
    text: 'The link has 100 Mb/s, and a policer drops what exceeds 10 Mb/s. No queue grows and no round trip says so: only losses tell the rate. Put BBRv1 in CUBIC’s place: it loses five times as many packets.',
    state: { rate: 100, buffer: 1, policer: 10, flows: [flow('cubic')] },
  },
  {
    id: 'late', title: 'A late comer',
    text: 'Two CUBIC flows fill the link, and a third comes after 20 seconds. Jain’s index is 1 where shares are equal: it falls, comes back and keeps wandering. Put own_queue in the place of all three: it settles near 1 within ten seconds.',
    state: { buffer: 2, duration: 90, flows: [flow('cubic'), flow('cubic'), flow('cubic', { start: 20 })] },
  },
  {
    id: 'learningcc', title: 'LearningCC under loss',
    text: 'One packet in a hundred is lost at random, as on a radio link. CUBIC takes each loss for congestion and stays slow. LearningCC learns how fast to grow while it runs, and resets its window to what the path carries.',
    state: { rate: 10, rtt: 60, buffer: 1, loss: 1, flows: [flow('learningcc'), flow('cubic')] },
  },
  {
    id: 'flagship', title: 'The flagship beside CUBIC',
    text: 'The flagship is a trained network that sets two values of own_queue. Alone it keeps a queue of a few packets. CUBIC comes after 15 seconds and fills the buffer; the flagship notices that another flow wants the link, and holds its share.',
    state: { buffer: 2, flows: [flow('flagship'), flow('cubic', { start: 15 })] },
  },
  {
    id: 'lia', title: 'Two paths under LIA',
    text: 'One connection uses two paths of 10 Mb/s; CUBIC runs on the first. LIA links the windows of its two subflows, so that together they take no more of a shared path than one TCP, and leaves the rest of the first path to CUBIC.',
    state: { rate: 10, rtt: 40, second: true, rate2: 10, rtt2: 60, buffer: 1, flows: [flow('lia', { route: 'both' }), flow('cubic', { route: 0 })] },
  },
];
