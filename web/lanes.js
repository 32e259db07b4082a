// Draws the packets of a path: those that wait in the queue, those on the wire, and acknowledgements on their way back.
import { colour, colours } from './plots.js';

const LANE = 78; // height of a lane, in pixels
const PAD = 10;

export class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.counts = [];
  }

  open(about, lanes) {
    [this.about, this.lanes] = [about, lanes];
    this.canvas.style.height = `${Math.max(1, lanes.length) * LANE + 6}px`;
    this.counts = [];
  }

  // Sorts packets into lanes; returns for each lane and flow how many wait and how many are on the wire.
  sort(packets, links) {
    const found = this.lanes.map(() => ({ waiting: [], flying: [], back: [] }));
    const of = new Map();
    this.lanes.forEach(({ link, reverse }, lane) => {
      of.set(link, [lane, 'data']);
      if (reverse !== null && !of.has(reverse)) of.set(reverse, [lane, 'back']);
    });
    for (let at = 0; at < packets.length; at += 4) {
      const [link, left, flow, isAck] = packets.subarray(at, at + 4);
      const place = of.get(link);
      if (!place) continue;
      const propagation = links[2 * link + 1];
      const part = propagation > 0 ? Math.max(0, 1 - left / propagation) : 1;
      if (place[1] === 'back' || isAck) found[place[0]].back.push([part, flow]);
      else if (left < 0 || left > propagation) found[place[0]].waiting.push([left < 0 ? Infinity : left, flow]);
      else found[place[0]].flying.push([part, flow]);
    }
    found.forEach((lane) => lane.waiting.sort((one, other) => one[0] - other[0]));
    return found;
  }

  draw({ packets, links }) {
    if (!this.about) return;
    const { canvas, context } = this;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const found = this.sort(packets, links);
    const look = { palette: colours(), ink: colour('ink'), dim: colour('dim'), line: colour('line'), box: colour('well') };
    found.forEach((lane, index) => this.lane(lane, index, links[2 * this.lanes[index].link], width, look));
    this.counts = found;
  }

  lane(lane, index, backlog, width, look) {
    const { context } = this;
    const { name, limit_packets: limit } = this.about.links[this.lanes[index].link];
    const top = index * LANE + 4;
    const queue = { from: PAD, to: PAD + (width - 2 * PAD) * 0.36, top: top + 20, height: 26 };
    const wire = { from: queue.to + 8, to: width - PAD, top: queue.top, height: queue.height };
    context.font = '11px system-ui';
    context.textBaseline = 'alphabetic';
    context.fillStyle = look.dim;
    const of = limit === null ? '' : ` of ${Math.round(limit)}`;
    context.fillText(`${this.lanes.length > 1 ? name : 'queue'}: ${Math.round(backlog)}${of}`, queue.from, top + 13);
    context.fillText('on the wire →', wire.from, top + 13);
    context.fillStyle = look.box;
    context.fillRect(queue.from, queue.top, queue.to - queue.from, queue.height);
    context.strokeStyle = look.line;
    context.strokeRect(queue.from + 0.5, queue.top + 0.5, queue.to - queue.from - 1, queue.height - 1);
    context.beginPath();
    context.moveTo(wire.from, wire.top + wire.height / 2);
    context.lineTo(wire.to, wire.top + wire.height / 2);
    context.stroke();
    this.waiting(lane.waiting, backlog, limit, queue, look);
    this.flying(lane, wire, queue, look);
  }

  // Packets in a queue, the next one at the right; the width of the box is the limit.
  waiting(packets, backlog, limit, box, look) {
    if (!packets.length) return;
    const room = box.to - box.from - 4;
    const whole = limit ?? Math.max(100, backlog);
    const each = Math.min(14, (room * Math.min(1, backlog / whole)) / packets.length);
    packets.forEach(([, flow], place) => {
      this.context.fillStyle = look.palette[flow % 6];
      const width = each > 3 ? each - 1 : each;
      this.context.fillRect(box.to - 2 - (place + 1) * each, box.top + 3, width, box.height - 6);
    });
  }

  flying({ flying, back }, wire, queue, look) {
    const { context } = this;
    const size = flying.length > 300 ? 3 : 5;
    for (const [part, flow] of flying) {
      context.fillStyle = look.palette[flow % 6];
      const lane = flow % 2 === 0 ? -size : 1;
      context.fillRect(wire.from + part * (wire.to - wire.from - size), wire.top + wire.height / 2 + lane, size, size);
    }
    const y = wire.top + wire.height + 12;
    context.fillStyle = look.dim;
    const label = wire.to < 520 ? '← ACKs' : '← acknowledgements';
    const end = queue.from + context.measureText(label).width + 6;
    context.fillText(label, queue.from, y + 5);
    for (const [part, flow] of back) {
      context.fillStyle = look.palette[flow % 6];
      context.fillRect(wire.to - part * (wire.to - end), y, 2, 5);
    }
  }

  // Packets of a flow in queues and on wires; about, where a part of all is drawn.
  count(flow, { packets, inside }) {
    const each = packets.length ? (4 * inside) / packets.length : 1;
    const own = (list) => Math.round(each * list.filter((one) => one[1] === flow).length);
    return this.counts.reduce(([waiting, flying], lane) => [waiting + own(lane.waiting), flying + own(lane.flying)], [0, 0]);
  }
}
