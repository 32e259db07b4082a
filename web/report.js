// The numbers of a report from the tables of a run, by the definitions of `ackademy run`.
const ratio = (above, below) => (below > 0 ? above / below : 0);

export function jain(shares) {
  const largest = Math.max(...shares);
  if (!shares.length || largest === 0) return 1;
  const scaled = shares.map((share) => share / largest);
  const sum = scaled.reduce((all, one) => all + one, 0);
  return sum ** 2 / (scaled.length * scaled.reduce((all, one) => all + one * one, 0));
}

// As Kong 2018 has it; none without throughput and delay above 0.
function merit(throughput, delay) {
  const value = Math.log(throughput) - 0.1 * Math.log(delay);
  return Number.isNaN(value) ? null : value;
}

const minus = (above, below) => (above === null || below === null ? null : above - below);

export function measure(tables) {
  const flows = tables.flows.map((row) => {
    const throughput = ratio(8e-6 * row.delivered_bytes, row.active_s);
    const delay = minus(row.rtt_at_delivery_ms, row.base_rtt_ms);
    return {
      flow: row.flow,
      controller: row.controller,
      throughput_mbps: throughput,
      goodput_mbps: ratio(8e-6 * row.goodput_bytes, row.active_s),
      delay_ms: delay,
      owd_ms: row.owd_mean_ms,
      loss_ratio: ratio(row.dropped_packets, row.sent_packets),
      stall_max_ms: row.stall_max_ms,
      m_e: delay === null ? null : merit(throughput, delay),
      timeouts: row.timeouts,
    };
  });
  const links = tables.links.map((row) => ({
    link: row.link,
    utilisation: ratio(row.delivered_bytes, row.capacity_bytes),
    goodput_share: ratio(row.goodput_bytes, row.capacity_bytes),
    wait_ms: row.wait_mean_ms,
    loss_ratio: ratio(row.queue_drops + row.random_losses, row.arrived_packets),
    queue_drops: row.queue_drops,
    marked_packets: row.marked_packets,
    arrived_packets: row.arrived_packets,
  }));
  return { flows, links, jain_throughput: jain(flows.map((row) => row.throughput_mbps)) };
}

const HEADS = {
  flow: 'Flow', controller: 'Controller', throughput_mbps: 'Throughput, Mb/s', goodput_mbps: 'Goodput, Mb/s', delay_ms: 'Delay, ms',
  owd_ms: 'One-way, ms', loss_ratio: 'Loss', stall_max_ms: 'Longest stall, ms', m_e: 'M_e', timeouts: 'Time-outs',
  link: 'Link', utilisation: 'Utilisation', goodput_share: 'Goodput share', wait_ms: 'Wait, ms', queue_drops: 'Queue drops', marked_packets: 'Marked',
};

// With four significant digits, as in every report of this project.
export function significant(value, digits = 4) {
  if (value === null || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value).replace('-', '−');
  const exponent = Number(value.toExponential(digits - 1).split('e')[1]);
  if (exponent < -3 || exponent > 6) return value.toExponential(Math.max(digits - 2, 0)).replace('e+', 'e').replaceAll('-', '−');
  return value.toFixed(Math.max(digits - 1 - exponent, 0)).replaceAll('-', '−');
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function table(caption, rows, heads) {
  const head = element('tr', {}, ...heads.map((name) => element('th', { scope: 'col' }, HEADS[name])));
  const lines = rows.map((row) => element('tr', {}, ...heads.map((name, index) => {
    const value = typeof row[name] === 'number' || row[name] === null ? significant(row[name]) : String(row[name]);
    return index === 0 ? element('th', { scope: 'row' }, value) : element('td', {}, value);
  })));
  const made = element('table', {}, element('caption', {}, caption), element('thead', {}, head), element('tbody', {}, ...lines));
  return element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, made);
}

export function report(measured) {
  const flows = ['flow', 'controller', 'throughput_mbps', 'goodput_mbps', 'delay_ms', 'owd_ms', 'loss_ratio', 'stall_max_ms', 'm_e', 'timeouts'];
  const links = ['link', 'utilisation', 'goodput_share', 'wait_ms', 'loss_ratio', 'queue_drops', 'marked_packets'];
  const busy = measured.links.filter((row) => row.arrived_packets > 0);
  const jains = `Jain’s index of throughput ${significant(measured.jain_throughput)}`;
  return [table(measured.flows.length > 1 ? `Flows. ${jains}` : 'Flows', measured.flows, flows), table('Links', busy, links)];
}

// What a screen reader hears at the end.
export const sentence = ({ flows }) => flows.map((row) => `${row.flow} ${significant(row.throughput_mbps, 3)} Mb/s, ${significant(row.delay_ms, 3)} ms delay`).join('; ');
