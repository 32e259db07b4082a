// The page: connects controls, the simulator's worker, drawings and numbers.
import { Controls, labelOf } from './controls.js';
import { Lanes } from './lanes.js';
import { Plots, Series } from './plots.js';
import { element, measure, report, sentence, significant } from './report.js';
import { DEFAULTS, commandOf, hashOf, isFree, ofHash, tomlOf } from './state.js';
import { TOURS } from './tours.js';

const SPEEDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100];
const DRAG_MS = 200; // between two changes of a link while a slider moves
const $ = (id) => document.getElementById(id);

const worker = new Worker('worker.js');
const own = new Map(); // policies that were dropped on the page, by the name of their folder
const app = {
  tour: 'start', state: structuredClone(DEFAULTS), file: null, on: true, about: null, series: null, toml: '', seed: 1,
  is_over: false, is_changed: false, frame: null, ask: false, changes: null, is_waiting: false, changed_at: 0, measured: null,
};
const lanes = new Lanes($('path'));
const plots = new Plots($('plots'), (index) => { app.cursor = index; showNow(true); });
const controls = new Controls(app.state, own, changed);
window.playground = app; // what tests read

const send = (kind, more = {}) => worker.postMessage({ kind, ...more });

function say(words) {
  $('state').textContent = words;
}

function fault(words) {
  $('fault').textContent = words;
  $('fault').hidden = !words;
}

// Begins anew with what the controls or the file say.
function restart(on = app.on) {
  const toml = app.file?.toml ?? tomlOf(app.state, own);
  app.seed = app.file?.seed ?? app.state.seed;
  Object.assign(app, { on, is_over: false, is_changed: false, measured: null, changes: null, is_waiting: false, ask: false });
  setSpeed();
  send('open', { toml, seed: app.seed, sample_ms: 100, on });
}

let later = 0;

// A value of the controls is another one.
function changed(key, live) {
  if (app.file && (!live || app.is_over)) return say('Run the scenario again, then change it.');
  app.tour = null;
  showTours();
  if (live && app.about && !app.is_over && canChange(key)) return change(key);
  clearTimeout(later);
  if (key === 'second') controls.showFlows();
  later = setTimeout(() => restart(app.on || app.is_over), 120);
  return undefined;
}

const canChange = (key) => !(key === 'rtt' && (app.file ? !app.about.is_dumbbell : app.state.second));

// Tells the simulator the new value from now on; while a slider moves, at most every DRAG_MS.
function change(key) {
  const { state } = app;
  const link = lanes.lanes[0]?.link ?? 0;
  const both = app.file === null && isFree(state);
  const found = {
    rate: () => [[link, 0, state.rate]],
    loss: () => [[link, 1, state.loss / 100]],
    rtt: () => (both ? [[0, 2, state.rtt / 2], [1, 2, state.rtt / 2]] : [[link, 2, state.rtt / 2]]),
  }[key]();
  app.changes = [...(app.changes ?? []).filter(([, kind]) => kind !== found[0][1]), ...found];
  app.is_changed = true;
  flush();
}

function flush() {
  if (!app.changes || app.is_waiting) return;
  const wait = app.changed_at + DRAG_MS - performance.now();
  if (wait > 0) {
    clearTimeout(app.timer);
    app.timer = setTimeout(flush, wait);
    return;
  }
  send('change', { changes: app.changes });
  Object.assign(app, { changes: null, is_waiting: true, changed_at: performance.now() });
}

function showTours() {
  for (const button of $('tours').querySelectorAll('button')) {
    const is_on = button.dataset.tour === app.tour;
    button.setAttribute('aria-pressed', String(is_on));
    if (is_on) $('tours').scrollLeft = button.offsetLeft - $('tours').offsetLeft - 40;
  }
  document.body.classList.toggle('from-file', app.file !== null);
  $('back').hidden = app.file === null;
  const tour = TOURS.find(({ id }) => id === app.tour);
  if (tour) $('lead').textContent = tour.text;
  else if (app.file) $('lead').textContent = `The scenario ${app.file.name}. Rate, round trip and loss can be changed where they are constant or scheduled.`;
  else $('lead').textContent = 'Your own run. Rate, round trip and loss take effect at once; everything else starts it anew.';
}

function take(state) {
  Object.assign(app.state, structuredClone(DEFAULTS), structuredClone(state));
  controls.show();
  controls.showFlows();
}

function startTour(id, on = true) {
  const tour = TOURS.find((one) => one.id === id) ?? TOURS[0];
  Object.assign(app, { tour: tour.id, file: null, kept: null });
  take(tour.state);
  showTours();
  restart(on);
}

function openFile(toml, name, seed = 1) {
  app.kept ??= structuredClone(app.state);
  Object.assign(app, { tour: null, file: { toml, name, seed } });
  showTours();
  restart(app.on);
}

// The controls as they were before a scenario came from a file.
function leaveFile() {
  if (app.file) take(app.kept);
  Object.assign(app, { file: null, kept: null });
}

function showGo() {
  $('go').textContent = app.on && !app.is_over ? 'Pause' : app.is_over ? 'Run again' : 'Start';
  $('step').disabled = app.is_over;
  $('end').disabled = app.is_over;
}

function showClock() {
  const { frame, about } = app;
  $('clock').textContent = `${frame.now.toFixed(2)} s of ${significant(about.duration_s, 3)} s · ${Math.round(frame.sent / 1e3)} k packets`;
  $('progress').value = frame.now / about.duration_s;
}

let shown_at = 0;

// The table of flows: the latest row, or that under the pointer; four times a second at most.
function showNow(at_once = false) {
  const { series, frame } = app;
  if (!series?.time.length || !frame || (!at_once && performance.now() - shown_at < 250)) return;
  shown_at = performance.now();
  const is_past = app.cursor !== null && app.cursor !== undefined && app.cursor < series.time.length;
  const row = is_past ? app.cursor : series.time.length - 1;
  const body = $('now').tBodies[0];
  series.rate.forEach((_, flow) => {
    const [waiting, flying] = is_past ? [null, null] : lanes.count(flow, frame);
    const values = [series.rate[flow][row], series.rtt[flow][row], series.cwnd[flow][row], waiting, flying, series.lost[flow][row]];
    const cells = body.rows[flow]?.cells;
    values.forEach((value, index) => { if (cells) cells[index + 1].textContent = significant(value ?? null, 3); });
  });
}

function opened({ about, lanes: found, toml }) {
  Object.assign(app, { about, toml, cursor: null });
  lanes.open(about, found);
  app.series = new Series(about, found);
  plots.end = about.duration_s;
  const names = about.flows.map(({ name, controller }) => (app.file && name !== controller ? `${name} (${labelOf(controller)})` : labelOf(name)));
  plots.build(app.series, names, found.map(({ link: own }) => about.links[own].name));
  const rows = names.slice(0, 40).map((name, flow) => element('tr', {}, element('th', { scope: 'row' }, element('span', { class: `swatch flow${flow % 6}` }), name), ...Array.from({ length: 6 }, () => element('td'))));
  $('now').tBodies[0].replaceChildren(...rows);
  fault(app.warning ?? '');
  app.warning = null;
  $('report').replaceChildren();
  $('pending').hidden = false;
  $('results').dataset.done = 'false';
  controls.inputs.rtt.row.hidden = app.file !== null && !about.is_dumbbell;
  if (app.file) showLinks(about, found);
  if (document.activeElement !== $('toml')) $('toml').value = toml;
  say(app.on ? 'Running.' : 'Ready; press Start.');
  showGo();
  remember();
}

// Values of a scenario from a file, on the sliders that may change them.
function showLinks({ links, is_dumbbell }, found) {
  const link = links[found[0]?.link ?? 0];
  Object.assign(app.state, { rate: link.rate_mbps ?? app.state.rate, loss: (link.loss ?? 0) * 100, rtt: is_dumbbell ? links[0].delay_ms + links[1].delay_ms : app.state.rtt });
  controls.show();
}

function gotFrame(message) {
  app.frame = message;
  if (message.fresh) app.series.clear();
  app.series.append(message.rows, message.queues);
  app.ask = true;
}

function finished({ tables, toml }) {
  Object.assign(app, { is_over: true, on: false, tables, toml, measured: measure(tables), is_waiting: false });
  $('report').replaceChildren(...report(app.measured));
  $('pending').hidden = true;
  $('results').dataset.done = 'true';
  say(`Finished after ${significant(app.about.duration_s, 3)} s: ${sentence(app.measured)}.`);
  showGo();
  remember();
}

const handlers = {
  ready: ({ code, controllers: known }) => {
    $('core').textContent = code;
    controls.catalogue = known;
    controls.showFlows();
  },
  opened,
  frame: gotFrame,
  finished,
  changed: ({ toml, at }) => {
    Object.assign(app, { toml, is_waiting: false });
    if (document.activeElement !== $('toml')) $('toml').value = toml;
    say(`Changed at ${at.toFixed(1)} s.`);
    remember();
    flush();
  },
  refused: ({ message, opened: was_open }) => {
    fault(message);
    if (!was_open) say('Not running.');
  },
  failed: ({ message }) => {
    Object.assign(app, { is_over: true, on: false });
    fault(`The simulator stopped: ${message}`);
    showGo();
  },
  digest: ({ hash }) => { app.digest = hash; },
};
worker.onmessage = ({ data }) => handlers[data.kind](data);
worker.onerror = (event) => fault(`The simulator did not load: ${event.message}`);

// A new frame is asked for when the last one is on the screen.
function draw() {
  if (app.ask) {
    app.ask = false;
    plots.draw();
    lanes.draw(app.frame);
    showClock();
    showNow(app.is_over || !app.on);
    if (app.on) send('more');
  }
  requestAnimationFrame(draw);
}

async function remember() {
  const hash = await link();
  if (hash !== location.hash) history.replaceState(null, '', hash);
}

const link = () => hashOf({ tour: app.is_changed ? null : app.tour, state: app.state, toml: app.file || app.is_changed ? app.toml : null, seed: app.seed });

async function copy(words, what) {
  try {
    await navigator.clipboard.writeText(words);
    $('copied').textContent = `${what} copied.`;
  } catch {
    $('toml').value = words;
    $('source').open = true;
    $('toml').select();
    $('copied').textContent = `This browser does not let the page copy: the ${what.toLowerCase()} is in the text field.`;
  }
}

function go() {
  if (app.is_over) return restart(true);
  app.on = !app.on;
  send('go', { on: app.on });
  say(app.on ? 'Running.' : `Paused at ${app.frame?.now.toFixed(2) ?? 0} s.`);
  showGo();
}

function setSpeed() {
  const value = SPEEDS[Number($('speed').value)];
  $('speed-value').textContent = `×${value}`;
  $('speed').setAttribute('aria-valuetext', `${value} times real time`);
  send('speed', { value });
}

function download() {
  const address = URL.createObjectURL(new Blob([app.toml], { type: 'application/toml' }));
  element('a', { href: address, download: `${app.file?.name?.replace(/\.toml$/, '') ?? app.tour ?? 'playground'}.toml` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1e4);
}

function wireButtons() {
  $('go').addEventListener('click', go);
  $('step').addEventListener('click', () => {
    app.on = false;
    send('step');
    say('Paused; one step.');
    showGo();
  });
  $('restart').addEventListener('click', () => restart(true));
  $('end').addEventListener('click', () => {
    send('speed', { value: Infinity });
    if (!app.on) go();
    say('Running to the end.');
    app.on = true;
    showGo();
  });
  $('speed').addEventListener('input', setSpeed);
  $('link').addEventListener('click', async () => copy(`${location.origin}${location.pathname}${await link()}`, 'Link'));
  $('command').addEventListener('click', () => copy(commandOf(app.toml, app.seed), 'Command'));
  $('download').addEventListener('click', download);
  $('use').addEventListener('click', () => openFile($('toml').value, 'of the text field', app.seed));
  $('back').addEventListener('click', () => {
    leaveFile();
    showTours();
    restart();
  });
  $('controls').addEventListener('submit', (event) => event.preventDefault());
}

// Files, by name: a scenario, a policy or a trace.
async function takeFiles(files) {
  const policy = files.filter(({ path }) => /(^|\/)(policy\.toml|weights\.safetensors)$/.test(path));
  if (policy.length === 2) {
    const folder = policy[0].path.split('/').at(-2) ?? 'dropped';
    for (const { path, file } of policy) send('file', { name: `${folder}/${path.split('/').at(-1)}`, content: new Uint8Array(await file.arrayBuffer()) });
    own.set(folder, { controller: 'policy', policy: folder });
    leaveFile();
    return controls.addFlow(folder);
  }
  const rest = files.filter((one) => !policy.includes(one));
  for (const { file } of rest.filter(({ path }) => !path.endsWith('.toml'))) {
    if (file.size > 1 << 26) return fault(`${file.name}: allowed are at most 64 MiB`);
    send('file', { name: file.name, content: new Uint8Array(await file.arrayBuffer()) });
    if (!rest.some(({ path }) => path.endsWith('.toml'))) {
      leaveFile();
      Object.assign(app.state, { trace: file.name, capacity: 'file' });
      controls.show();
      changed('capacity', false);
    }
  }
  const scenario = rest.find(({ path }) => path.endsWith('.toml'));
  if (scenario) openFile(await scenario.file.text(), scenario.file.name);
  else if (policy.length === 1) fault('A policy: allowed are policy.toml and weights.safetensors together');
  return undefined;
}

async function walk(entry, path = '') {
  if (entry.isFile) return [{ path: path + entry.name, file: await new Promise((done, failed) => { entry.file(done, failed); }) }];
  const found = await new Promise((done, failed) => { entry.createReader().readEntries(done, failed); });
  return (await Promise.all(found.map((inner) => walk(inner, `${path}${entry.name}/`)))).flat();
}

function wireFiles() {
  $('files').addEventListener('change', async () => {
    await takeFiles([...$('files').files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
    $('files').value = '';
  });
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    document.body.classList.add('drop');
  });
  document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) document.body.classList.remove('drop'); });
  document.addEventListener('drop', async (event) => {
    event.preventDefault();
    document.body.classList.remove('drop');
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    await takeFiles((await Promise.all(entries.map((entry) => walk(entry)))).flat());
  });
}

async function fromHash() {
  try {
    const found = await ofHash(location.hash);
    if (found.toml) openFile(found.toml, found.name ?? 'of the link', found.seed);
    else if (found.state) {
      Object.assign(app, { tour: null, file: null, kept: null });
      take(found.state);
      showTours();
      restart(app.on);
    } else startTour(found.tour ?? 'start', app.on);
  } catch {
    startTour('start', app.on);
    app.warning = 'The link says nothing that this page knows; this is the first tour.';
  }
}

for (const { id, title } of TOURS) {
  const button = element('button', { type: 'button', 'data-tour': id, 'aria-pressed': 'false' }, title);
  button.addEventListener('click', () => startTour(id));
  $('tours').append(element('li', {}, button));
}
wireButtons();
wireFiles();
addEventListener('hashchange', fromHash);
app.on = !matchMedia('(prefers-reduced-motion: reduce)').matches;
controls.show();
await fromHash();
requestAnimationFrame(draw);
