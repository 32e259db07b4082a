// Rows of the simulator as columns, and the plots of them.
/* global uPlot */
import { jain } from './report.js';

export const DASHES = [[], [8, 4], [3, 3], [10, 3, 3, 3], [6, 2], [2, 5]];
const SMOOTH_S = 0.5; // over which a throughput is measured
const MOST_LINES = 24; // in a plot
const FAIR_S = 1; // and over which shares are compared

export class Series {
  constructor(about, lanes) {
    this.flows = about.flows.length;
    this.sample = about.sample_s;
    this.lanes = lanes.length;
    this.clear();
  }

  clear() {
    const columns = (count) => Array.from({ length: count }, () => []);
    this.time = [];
    [this.cwnd, this.rtt, this.arrived, this.rate, this.lost] = Array.from({ length: 5 }, () => columns(this.flows));
    this.queue = columns(this.lanes);
    this.fairness = [];
  }

  // Rows of one time come together, in the order of the flows; a flow has none before its start.
  append(rows, queues) {
    for (let at = 0; at < rows.length; at += 6) {
      const [time, flow, cwnd, rtt, arrived, lost] = rows.subarray(at, at + 6);
      if (time !== this.time.at(-1)) this.extend(time);
      const last = this.time.length - 1;
      this.cwnd[flow][last] = cwnd;
      this.rtt[flow][last] = Number.isNaN(rtt) ? null : rtt;
      this.arrived[flow][last] = arrived;
      this.lost[flow][last] = lost;
      this.rate[flow][last] = this.over(flow, last, SMOOTH_S);
    }
    queues.forEach((queue, lane) => this.queue[lane].push(...queue));
    this.compare();
  }

  extend(time) {
    this.time.push(time);
    for (const columns of [this.cwnd, this.rtt, this.arrived, this.rate, this.lost]) columns.forEach((column) => column.push(null));
  }

  // Mb/s of a flow over so many seconds before a row, as far as it has run.
  over(flow, row, seconds) {
    const arrived = this.arrived[flow];
    let from = Math.max(0, row - Math.max(1, Math.round(seconds / this.sample)));
    while (from < row && arrived[from] === null) from += 1;
    return from < row ? ((arrived[row] - arrived[from]) * 8e-6) / (this.time[row] - this.time[from]) : null;
  }

  // Jain's index of the flows that run.
  compare() {
    for (let row = this.fairness.length; row < this.time.length; row += 1) {
      const shares = this.arrived.map((_, flow) => (this.arrived[flow][row] === null ? null : this.over(flow, row, FAIR_S)));
      const known = shares.filter((share) => share !== null);
      this.fairness.push(known.length > 1 && known.some((share) => share > 0) ? jain(known) : null);
    }
  }
}

const PLOTS = [
  { key: 'rate', title: 'Throughput, Mb/s' },
  { key: 'rtt', title: 'Round trip, ms' },
  { key: 'cwnd', title: 'Window, packets' },
  { key: 'queue', title: 'Queue, packets' },
  { key: 'fairness', title: 'Jain’s index' },
];

const styles = () => getComputedStyle(document.documentElement);
export const colours = () => Array.from({ length: 6 }, (_, index) => styles().getPropertyValue(`--flow${index}`).trim());
export const colour = (name) => styles().getPropertyValue(`--${name}`).trim();

export class Plots {
  constructor(place, onCursor) {
    this.place = place;
    this.onCursor = onCursor;
    this.plots = [];
    new ResizeObserver(() => this.resize()).observe(place);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.series && this.build(this.series, this.names));
  }

  build(series, names, lanes = this.lanes) {
    Object.assign(this, { series, names, lanes });
    this.plots.forEach(({ plot }) => plot.destroy());
    this.place.replaceChildren();
    const shown = PLOTS.filter(({ key }) => key !== 'fairness' || series.flows > 1);
    this.plots = shown.map((own) => this.one(own, series, names));
    this.draw();
  }

  one({ key, title }, series, names) {
    const figure = document.createElement('figure');
    const caption = document.createElement('figcaption');
    caption.textContent = key === 'queue' && series.lanes > 1 ? `${title}: ${this.lanes.join(', ')} (dashed)` : title;
    figure.append(caption);
    figure.className = key;
    this.place.append(figure);
    const palette = colours();
    const line = (label, stroke, dash) => ({ label, stroke, dash, width: 1.7, points: { show: false }, spanGaps: false });
    const lines = {
      queue: () => series.queue.map((_, lane) => line(`queue ${lane + 1}`, colour(lane === 0 ? 'ink' : 'dim'), DASHES[lane])),
      fairness: () => [line('Jain', colour('ink'), [])],
    }[key]?.() ?? names.slice(0, MOST_LINES).map((name, flow) => line(name, palette[flow % 6], DASHES[flow % 6]));
    const options = { ...this.frame(figure, key), series: [{}, ...lines] };
    return { key, figure, plot: new uPlot(options, this.data(key), figure) };
  }

  frame(figure, key) {
    const axis = { stroke: colour('dim'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line'), width: 1 }, font: '11px system-ui' };
    const top = key === 'fairness' ? () => [0, 1.02] : (_, low, high) => [0, Math.max(high ?? 0, 1) * 1.08];
    return {
      width: Math.max(figure.clientWidth, 200), height: 172, legend: { show: false }, padding: [8, 18, 0, 0],
      scales: { x: { time: false, range: () => [0, this.end ?? 60] }, y: { range: top } },
      axes: [{ ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => `${tick} s`) }, { ...axis, size: 46 }],
      cursor: { sync: { key: 'time' }, drag: { x: false, y: false }, points: { size: 6 } },
      hooks: { setCursor: [(plot) => this.onCursor(plot.cursor.idx)] },
    };
  }

  data(key) {
    const { series } = this;
    if (key === 'fairness') return [series.time, series.fairness];
    if (key === 'queue') return [series.time, ...series.queue.map((column) => column.slice(0, series.time.length))];
    return [series.time, ...series[key].slice(0, MOST_LINES)];
  }

  draw() {
    for (const { key, plot } of this.plots) plot.setData(this.data(key));
  }

  resize() {
    for (const { figure, plot } of this.plots) {
      const width = figure.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: 172 });
    }
  }
}
