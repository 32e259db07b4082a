// What the controls say, and what becomes of it: a scenario file, a link, a command.

export const QUEUES = [
  ['drop_tail', 'Drop-tail'], ['red', 'RED'], ['codel', 'CoDel'], ['fq_codel', 'FQ-CoDel'], ['pie', 'PIE'], ['dualpi2', 'DualPI2'],
];
export const MOST_FLOWS = 6;

// Controllers of which a policy is a part, by the name that the page gives them.
export const POLICIES = {
  flagship: { controller: 'policy', policy: 'flagship' },
  aurora_mixed: { controller: 'policy', policy: 'aurora_mixed' },
  tcp_drinc: { controller: 'tcp_drinc', policy: 'tcp_drinc' },
  lp_tcp: { controller: 'lp_tcp', policy: 'policies/lp_tcp/L50_K4/forest.safetensors' },
  drl_cc: { controller: 'drl_cc', policy: 'drl_cc/all' },
};

export const flow = (cc, more = {}) => ({ cc, start: 0, extra: 0, route: 0, ...more });

export const DEFAULTS = {
  rate: 20, rtt: 40, buffer: 2, unit: 'bdp', queue: 'drop_tail', ecn: false, loss: 0, policer: 0,
  capacity: 'constant', drawn: '20 20 20 20 20', trace: '', second: false, rate2: 10, rtt2: 60,
  duration: 60, seed: 1, flows: [flow('cubic'), flow('bbr3')],
};

const number = (value) => String(Number(value.toPrecision(12)));

const packetsOf = ({ buffer, unit, rate, rtt }) => Math.max(2, Math.round(unit === 'packets' ? buffer : (buffer * rate * rtt) / 12));

// Limits and thresholds follow from the buffer; a marking queue is for flows that announce ECN.
function queueOf(state) {
  const packets = packetsOf(state);
  const ecn = state.ecn ? ', ecn = true' : '';
  switch (state.queue) {
    case 'drop_tail':
      if (state.unit === 'bdp' && state.capacity === 'constant') return `{ kind = "drop_tail", bdp = ${number(state.buffer)}, min_bytes = 3000 }`;
      return `{ kind = "drop_tail", packets = ${packets} }`;
    case 'red': {
      const most = Math.max(3, Math.round(packets / 2));
      return `{ kind = "red", min_packets = ${Math.max(1, Math.round(most / 3))}, max_packets = ${most}, packets = ${packets}${ecn} }`;
    }
    case 'dualpi2': return `{ kind = "dualpi2", packets = ${packets} }`;
    default: return `{ kind = "${state.queue}", packets = ${packets}${ecn} }`;
  }
}

export const drawnRates = (words) => words.trim().split(/[\s,;]+/).map(Number);

function capacityOf(state) {
  if (state.capacity === 'constant') return `rate_mbps = ${number(state.rate)}`;
  if (state.capacity === 'drawn') {
    const rates = drawnRates(state.drawn);
    const each = state.duration / rates.length;
    return `rate_schedule = [${rates.map((rate, index) => `[${number(index * each)}, ${number(rate)}]`).join(', ')}]`;
  }
  return `trace = "${state.capacity === 'cellular' ? 'cellular.trace' : state.trace}"`;
}

function linkFields(state, more) {
  const lines = [capacityOf(state), ...more, `queue = ${queueOf(state)}`];
  if (state.loss > 0) lines.push(`loss = { kind = "bernoulli", ratio = ${number(state.loss / 100)} }`);
  if (state.policer > 0) lines.push(`policer = { rate_mbps = ${number(state.policer)}, burst_bytes = 100_000 }`);
  return lines;
}

// Access links of a flow with a longer round trip.
function freeTopology(state) {
  const half = `delay_ms = ${number(state.rtt / 2)}`;
  const back = state.capacity === 'constant' ? state.rate : 1000;
  const lines = ['[[link]]', 'name = "bottleneck"', ...linkFields(state, [half]), '', '[[link]]', 'name = "reverse"', `rate_mbps = ${number(back)}`, half, ''];
  state.flows.forEach(({ extra }, index) => {
    if (extra > 0) lines.push('[[link]]', `name = "access${index + 1}"`, 'rate_mbps = 10000', `delay_ms = ${number(extra)}`, '');
  });
  return lines;
}

function topology(state) {
  if (state.second) {
    const other = { ...state, rate: state.rate2, rtt: state.rtt2, capacity: 'constant', policer: 0 };
    const fields = (own) => linkFields(own, [`delay_ms = ${number(own.rtt / 2)}`]);
    return ['[two_path.first]', ...fields(state), '', '[two_path.second]', ...fields(other), ''];
  }
  if (isFree(state)) return freeTopology(state);
  return ['[dumbbell]', `rtt_ms = ${number(state.rtt)}`, '', '[dumbbell.bottleneck]', ...linkFields(state, []), ''];
}

export const isFree = (state) => !state.second && state.flows.some(({ extra }) => extra > 0);

export function names(flows) {
  const seen = {};
  return flows.map(({ cc }) => {
    seen[cc] = (seen[cc] ?? 0) + 1;
    return seen[cc] === 1 ? cc : `${cc} ${seen[cc]}`;
  });
}

const ECN = { dctcp: 'accurate', prague: 'l4s' };

function flowLines(state, one, index, name, own) {
  const policy = POLICIES[one.cc] ?? own.get(one.cc);
  const lines = ['[[flow]]', `name = "${name}"`, `controller = "${policy?.controller ?? one.cc}"`];
  if (policy) lines.push(`params = { policy = "${policy.policy}" }`);
  if (one.start > 0) lines.push(`start_s = ${number(one.start)}`);
  const ecn = ECN[one.cc] ?? (state.ecn ? 'classic' : null);
  if (ecn) lines.push(`sender = { ecn = "${ecn}" }`);
  if (state.second) lines.push(one.route === 'both' ? 'multipath = true' : `route = [${one.route}]`);
  else if (isFree(state)) lines.push(one.extra > 0 ? `path = ["access${index + 1}", "bottleneck"]` : 'path = ["bottleneck"]', 'reverse = ["reverse"]');
  return lines;
}

// The scenario file of the controls; `own` has policies that were dropped on the page.
export function tomlOf(state, own = new Map()) {
  const sample = Math.max(10, Math.round((state.duration * 1e3) / 600));
  const title = names(state.flows);
  const flows = state.flows.flatMap((one, index) => [...flowLines(state, one, index, title[index], own), '']);
  return [`duration_s = ${number(state.duration)}`, `sample_interval_ms = ${sample}`, '', ...topology(state), ...flows].join('\n').trimEnd() + '\n';
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function pack(words) {
  const bytes = await through(new CompressionStream('deflate-raw'), new TextEncoder().encode(words));
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

async function unpack(word) {
  const bytes = Uint8Array.from(atob(word.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
  return new TextDecoder().decode(await through(new DecompressionStream('deflate-raw'), bytes));
}

// A link says what differs from the defaults, or holds a whole scenario file.
export async function hashOf({ tour, state, toml, seed }) {
  if (toml !== null) return `#scenario=${await pack(toml)}&seed=${seed}`;
  if (tour !== null) return `#tour=${tour}`;
  const changed = Object.fromEntries(Object.entries(state).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULTS[key])));
  return `#play=${await pack(JSON.stringify(changed))}`;
}

export async function ofHash(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  if (fields.has('scenario')) return { toml: await unpack(fields.get('scenario')), seed: seedOf(fields.get('seed')), name: fields.get('name') };
  if (fields.has('play')) return { state: checked(JSON.parse(await unpack(fields.get('play')))) };
  return { tour: fields.get('tour') };
}

const seedOf = (word) => Math.min(Math.max(Math.trunc(Number(word)) || 0, 0), 4294967295);

// A link is untrusted: what is not of the kind that the defaults have is left out. Ranges are the simulator's.
function checked(given) {
  const state = structuredClone(DEFAULTS);
  for (const [key, value] of Object.entries(given)) {
    if (key !== 'flows' && key in state && typeof value === typeof state[key]) state[key] = value;
  }
  const word = (value) => /^[\w./ -]{1,80}$/.test(value);
  if (!word(state.trace)) state.trace = '';
  if (!QUEUES.some(([name]) => name === state.queue)) state.queue = DEFAULTS.queue;
  if (Array.isArray(given.flows) && given.flows.length > 0) {
    const finite = (value) => (Number.isFinite(value) ? value : 0);
    state.flows = given.flows.slice(0, MOST_FLOWS).filter((one) => word(one?.cc)).map((one) => flow(one.cc, {
      start: finite(one.start), extra: finite(one.extra), route: [0, 1, 'both'].includes(one.route) ? one.route : 0,
    }));
  }
  return state;
}

// A shell takes the file as it stands: `ackademy run` reads an argument with a line break as a scenario.
export const commandOf = (toml, seed) => `ackademy run '${toml.trimEnd().replaceAll("'", "'\\''")}\n' --seed ${seed}`;
