// Runs the simulator beside the page. The page asks for the next frame when it has drawn the last one.
const BUDGET_MS = 20; // of simulating between two messages
const MOST_PACKETS = 3000; // drawn at a time
const files = new Set();
let core; // exports of the program
let run = null; // { end, now, lanes, row, queue_rows, on, speed, wall, spent_ms, slice }
let opening = 0;

const started = instantiate();

async function instantiate() {
  const response = await fetch('ackademy.wasm');
  if (!response.ok) throw new Error(`ackademy.wasm: ${response.status}`);
  core = (await WebAssembly.instantiate(await response.arrayBuffer(), {})).instance.exports;
  core.play_controllers();
  postMessage({ kind: 'ready', ...JSON.parse(text()) });
}

function put(...parts) {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  let at = core.play_input(length);
  for (const part of parts) {
    new Uint8Array(core.memory.buffer, at, part.length).set(part);
    at += part.length;
  }
}

// A copy: memory moves when it grows.
const output = () => {
  const at = core.play_output();
  return core.memory.buffer.slice(at, at + core.play_output_len());
};
const text = () => new TextDecoder().decode(output());
const encode = (words) => new TextEncoder().encode(words);

function keep(name, content) {
  const bytes = encode(name);
  put(bytes, content);
  core.play_file(bytes.length);
  files.add(name);
}

// Files that a scenario names and that lie beside the page.
async function fetchNamed(toml) {
  const wanted = new Map();
  for (const [, word] of toml.matchAll(/^\s*(?:params\s*=\s*\{.*)?\bpolicy\s*=\s*["']([^"']+)["']/gm)) {
    const name = word.replace(/\/+$/, '');
    const place = `policies/${name.replace(/^.*?policies\//, '')}`;
    if (name.endsWith('.safetensors')) wanted.set(name, place);
    else for (const file of ['policy.toml', 'weights.safetensors']) wanted.set(`${name}/${file}`, `${place}/${file}`);
  }
  for (const [, name] of toml.matchAll(/\btrace\s*=\s*["']([^"']+)["']/g)) wanted.set(name, `traces/${name.replace(/^.*\//, '')}`);
  await Promise.all([...wanted].filter(([name]) => !files.has(name)).map(async ([name, place]) => {
    const response = await fetch(place);
    if (response.ok) keep(name, new Uint8Array(await response.arrayBuffer()));
  }));
}

async function open({ toml, seed, sample_ms, on }) {
  const mine = ++opening;
  run = null;
  await started;
  await fetchNamed(toml);
  if (mine !== opening) return;
  put(encode(toml));
  if (core.play_open(seed, sample_ms)) return postMessage({ kind: 'refused', message: text(), opened: false });
  const about = JSON.parse(text());
  run = { end: about.duration_s, now: 0, row: 0, queue_rows: 0, on, wall: performance.now(), spent_ms: 0, slice: 0.01, links: about.links.length, sample: about.sample_s };
  run.lanes = lanesOf(about);
  postMessage({ kind: 'opened', about, lanes: run.lanes, toml });
  frame(true);
}

// Links that are drawn: those of data that have a limit, or else all of data, four at most.
function lanesOf({ links, routes }) {
  const carry = [...new Set(routes.flatMap((route) => route.forward))].sort((a, b) => a - b);
  const limited = carry.filter((link) => links[link].limit_packets !== null);
  return (limited.length ? limited : carry).slice(0, 4).map((link) => {
    const back = routes.find((route) => route.forward.includes(link))?.reverse ?? [];
    return { link, reverse: back.find((own) => !carry.includes(own)) ?? null };
  });
}

let speed = 5;

function advance(target, budget = BUDGET_MS) {
  const start = performance.now();
  while (run.now < target && performance.now() - start < budget) {
    const before = performance.now();
    run.now = core.play_run(Math.min(target, run.now + run.slice));
    const took = performance.now() - before;
    run.slice = took < 4 ? run.slice * 1.6 : took > 12 ? run.slice / 2 : run.slice;
  }
  run.spent_ms += performance.now() - start;
}

function tick() {
  if (!run?.on) return;
  const now = performance.now();
  const passed = Math.min(now - run.wall, 100) / 1e3;
  run.wall = now;
  advance(Math.min(speed === Infinity ? run.end : run.now + passed * speed, run.end), speed === Infinity ? 3 * BUDGET_MS : BUDGET_MS);
  frame(false);
}

function frame(fresh) {
  core.play_rows(run.row);
  const rows = new Float64Array(output());
  run.row += rows.length / 6;
  const queues = run.lanes.map(({ link }) => {
    core.play_queue(link, run.queue_rows);
    return new Float64Array(output());
  });
  run.queue_rows += queues[0]?.length ?? 0;
  const inside = core.play_packets(MOST_PACKETS);
  const packets = new Float32Array(output());
  core.play_links(run.links);
  const links = new Float64Array(output());
  const sent = core.play_sent();
  const over = run.now >= run.end;
  const message = { kind: 'frame', fresh, now: run.now, rows, queues, packets, inside, links, sent, spent_ms: run.spent_ms, on: run.on && !over };
  postMessage(message, [rows.buffer, packets.buffer, links.buffer, ...queues.map((queue) => queue.buffer)]);
  if (over) finish();
}

function finish() {
  core.play_text();
  const toml = text();
  core.play_finish();
  const tables = text();
  run = null;
  postMessage({ kind: 'finished', tables: JSON.parse(tables.replaceAll('NaN', 'null')), toml });
}

function change({ changes }) {
  if (!run) return;
  for (const [link, kind, value] of changes) {
    if (core.play_change(link, kind, value)) {
      postMessage({ kind: 'refused', message: text(), opened: true });
      break;
    }
  }
  core.play_text();
  postMessage({ kind: 'changed', toml: text(), at: run.now });
  [run.row, run.queue_rows, run.wall] = [0, 0, performance.now()];
  frame(true);
}

async function digest() {
  core.play_bytes();
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', output()));
  postMessage({ kind: 'digest', hash: Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('') });
}

const handlers = {
  open,
  change,
  digest,
  more: tick,
  speed: ({ value }) => { speed = value; },
  go: ({ on }) => {
    if (!run) return;
    [run.on, run.wall] = [on, performance.now()];
    if (on) tick(); else frame(false);
  },
  step: () => {
    if (!run) return;
    run.on = false;
    advance(Math.min(run.now + run.sample, run.end), Infinity);
    frame(false);
  },
  file: async ({ name, content }) => {
    await started;
    keep(name, content);
  },
};

onmessage = async ({ data }) => {
  try {
    await handlers[data.kind](data);
  } catch (error) {
    run = null;
    postMessage({ kind: 'failed', message: String(error) });
  }
};
