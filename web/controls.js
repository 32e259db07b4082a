// The form: what it shows follows from the state, and what is typed goes into the state.
import { element } from './report.js';
import { MOST_FLOWS, POLICIES, QUEUES, drawnRates, flow } from './state.js';

// `live` values change while the run goes on.
const NUMBERS = {
  rate: { label: 'Rate', unit: 'Mb/s', min: 0.1, max: 1000, live: true, shown: (state) => state.capacity === 'constant' },
  rtt: { label: 'Round trip', unit: 'ms', min: 1, max: 1000, live: true },
  loss: { label: 'Random loss', unit: '%', min: 0, max: 20, live: true },
  buffer: { label: 'Buffer', unit: '', min: 0.1, max: 1000 },
  policer: { label: 'Policer (0: none)', unit: 'Mb/s', min: 0, max: 1000 },
  rate2: { label: 'Rate of the second path', unit: 'Mb/s', min: 0.1, max: 1000, shown: (state) => state.second },
  rtt2: { label: 'Round trip of the second path', unit: 'ms', min: 1, max: 1000, shown: (state) => state.second },
  duration: { label: 'Duration', unit: 's', min: 5, max: 600 },
  seed: { label: 'Seed', unit: '', min: 0, max: 4294967295, whole: true },
};
const CAPACITIES = [['constant', 'Constant'], ['cellular', 'Recorded: cellular'], ['drawn', 'Drawn'], ['file', 'Trace from a file']];
const FAMILIES = [
  ['Classic', ['cubic', 'new_reno', 'bbr3', 'bbr1', 'copa', 'vegas', 'own_queue']],
  ['Learned', ['flagship', 'aurora_mixed', 'learningcc', 'vivace', 'pcc_allegro', 'rl_tcp', 'q_tcp', 'tcp_drinc', 'lp_tcp']],
  ['Several paths', ['lia', 'olia', 'balia', 'wvegas', 'drl_cc']],
];
const LABELS = {
  cubic: 'CUBIC', new_reno: 'NewReno', bbr1: 'BBRv1', bbr3: 'BBRv3', copa: 'Copa', vegas: 'Vegas', learningcc: 'LearningCC', vivace: 'PCC Vivace',
  pcc_allegro: 'PCC Allegro', rl_tcp: 'RL-TCP', q_tcp: 'Q-TCP', tcp_drinc: 'TCP-Drinc', lp_tcp: 'LP-TCP', lia: 'LIA', olia: 'OLIA', balia: 'BALIA',
  wvegas: 'wVegas', drl_cc: 'DRL-CC', flagship: 'flagship (policy)', aurora_mixed: 'aurora_mixed (policy)', dctcp: 'DCTCP', prague: 'Prague',
};
// `cubic 2`, the second of its kind, is CUBIC 2.
export const labelOf = (name) => name.replace(/^\w+/, (word) => LABELS[word] ?? word);

// A slider's place in [0, 1000] on a scale where small values have as much room as large ones.
const toSlider = ({ min, max }, value) => (min > 0 ? Math.round((1000 * Math.log(value / min)) / Math.log(max / min)) : Math.round(1000 * (Math.max(value, 0) / max) ** (1 / 3)));
const ofSlider = ({ min, max }, place) => Number((min > 0 ? min * (max / min) ** (place / 1000) : max * (place / 1000) ** 3).toPrecision(2));

export class Controls {
  constructor(state, own, changed) {
    Object.assign(this, { state, own, changed, inputs: {} });
    this.catalogue = [];
    const path = document.getElementById('path-fields');
    path.append(this.number('rate'), this.drawnField(), this.number('rtt'), this.bufferField(), this.select('queue', 'Queue', QUEUES), this.check('ecn', 'Marks (ECN) instead of drops'), this.number('loss'), this.select('capacity', 'Capacity', CAPACITIES), this.number('policer', false), this.check('second', 'A second path'), this.number('rate2'), this.number('rtt2'));
    document.getElementById('run-fields').append(this.number('duration', false), this.number('seed', false));
    document.getElementById('add').addEventListener('click', () => this.addFlow());
  }

  set(key, value, live = false) {
    this.state[key] = value;
    this.changed(key, live);
  }

  number(key, slides = true) {
    const spec = NUMBERS[key];
    const input = element('input', { type: 'number', id: `in-${key}`, min: spec.min, max: spec.max, step: spec.whole ? 1 : 'any', inputmode: 'decimal' });
    const label = element('label', { for: input.id }, spec.unit ? `${spec.label}, ${spec.unit}` : spec.label);
    const row = element('div', { class: `row${spec.live ? '' : ' form-only'}` }, label, input);
    const slider = slides ? element('input', { type: 'range', min: 0, max: 1000, step: 1, 'aria-label': `${spec.label}, slider` }) : null;
    if (slider) row.append(slider);
    input.addEventListener('change', () => {
      const value = Number(input.value);
      if (input.value === '' || !(value >= spec.min && value <= spec.max)) {
        input.setCustomValidity(`${spec.label}: allowed is a number in [${spec.min}, ${spec.max}]`);
        input.reportValidity();
        return;
      }
      input.setCustomValidity('');
      this.set(key, spec.whole ? Math.trunc(value) : value, spec.live);
      this.show();
    });
    slider?.addEventListener('input', () => {
      this.set(key, ofSlider(spec, Number(slider.value)), spec.live);
      this.show();
    });
    this.inputs[key] = { spec, row, input, slider };
    return row;
  }

  bufferField() {
    const row = this.number('buffer');
    const unit = element('select', { 'aria-label': 'Unit of the buffer' }, element('option', { value: 'bdp' }, 'BDP'), element('option', { value: 'packets' }, 'packets'));
    row.querySelector('input').after(unit);
    row.classList.add('with-unit');
    this.inputs.unit = { row: unit, input: unit };
    unit.addEventListener('change', () => this.set('unit', unit.value));
    return row;
  }

  select(key, label, options) {
    const input = element('select', { id: `in-${key}` }, ...options.map(([value, words]) => element('option', { value }, words)));
    const row = element('div', { class: 'row form-only' }, element('label', { for: input.id }, label), input);
    input.addEventListener('change', () => {
      this.set(key, input.value);
      this.show();
    });
    this.inputs[key] = { row, input };
    return row;
  }

  check(key, label) {
    const input = element('input', { type: 'checkbox', id: `in-${key}` });
    const row = element('div', { class: 'row check form-only' }, input, element('label', { for: input.id }, label));
    input.addEventListener('change', () => {
      this.set(key, input.checked);
      this.show();
    });
    this.inputs[key] = { row, input };
    return row;
  }

  // Rates over the run as a curve that is drawn, or as words.
  drawnField() {
    const input = element('input', { type: 'text', id: 'in-drawn', 'aria-describedby': 'drawn-note' });
    const canvas = element('canvas', { class: 'draw', 'aria-hidden': 'true' });
    const note = element('p', { class: 'note', id: 'drawn-note' }, 'Draw the rate over the run, or type rates in Mb/s, each for an equal part of it.');
    const row = element('div', { class: 'row form-only' }, element('label', { for: 'in-drawn' }, 'Rates, Mb/s'), input, canvas, note);
    input.addEventListener('change', () => {
      const fits = drawnRates(input.value).every((rate) => rate >= 0 && rate <= 1000) && drawnRates(input.value).some((rate) => rate > 0);
      input.setCustomValidity(fits ? '' : 'Rates: allowed are numbers in [0, 1000], one of them above 0');
      if (input.reportValidity()) this.set('drawn', input.value);
      this.show();
    });
    const draw = (event) => {
      if (event.buttons === 0) return;
      const rates = this.curve();
      const box = canvas.getBoundingClientRect();
      const place = Math.min(rates.length - 1, Math.max(0, Math.floor((rates.length * (event.clientX - box.left)) / box.width)));
      rates[place] = Number((50 * Math.min(1, Math.max(0.004, 1 - (event.clientY - box.top) / box.height))).toPrecision(2));
      this.set('drawn', rates.join(' '));
      this.show();
    };
    ['pointerdown', 'pointermove'].forEach((name) => canvas.addEventListener(name, draw));
    this.inputs.drawn = { row, input, canvas };
    return row;
  }

  // The drawn rates in 30 parts.
  curve() {
    const rates = drawnRates(this.state.drawn);
    return Array.from({ length: 30 }, (_, part) => rates[Math.floor((part * rates.length) / 30)] || 0);
  }

  paint() {
    const { canvas } = this.inputs.drawn;
    const context = canvas.getContext('2d');
    [canvas.width, canvas.height] = [300, 80];
    context.fillStyle = getComputedStyle(canvas).color;
    this.curve().forEach((rate, part) => context.fillRect(part * 10, 80 - (80 * Math.min(rate, 50)) / 50, 9, 80));
  }

  // Every value where it belongs.
  show() {
    const { state, inputs } = this;
    for (const [key, { spec, row, input, slider }] of Object.entries(inputs)) {
      if (input.type === 'checkbox') input.checked = state[key];
      else if (document.activeElement !== input || input.type === 'range') input.value = state[key];
      if (slider && document.activeElement !== slider) slider.value = toSlider(spec, state[key]);
      slider?.setAttribute('aria-valuetext', `${state[key]} ${spec.unit}`);
      if (spec?.shown) row.hidden = !spec.shown(state);
    }
    inputs.drawn.row.hidden = state.capacity !== 'drawn';
    inputs.ecn.row.hidden = ['drop_tail', 'dualpi2'].includes(state.queue);
    inputs.policer.row.hidden = state.policer === 0 && state.capacity !== 'constant';
    if (state.capacity === 'drawn') this.paint();
  }

  showFlows() {
    const list = document.getElementById('flows');
    list.replaceChildren(...this.state.flows.map((one, index) => this.flowRow(one, index)));
    document.getElementById('add').disabled = this.state.flows.length >= MOST_FLOWS;
  }

  flowRow(one, index) {
    const title = `Flow ${index + 1}`;
    const changed = (key, value) => {
      one[key] = value;
      if (key === 'route') this.showFlows();
      this.changed('flows', false);
    };
    const choice = element('select', { 'aria-label': `${title}: controller` }, ...this.options(one.cc));
    choice.addEventListener('change', () => changed('cc', choice.value));
    const field = (key, label, most) => {
      const input = element('input', { type: 'number', min: 0, max: most, step: 'any', value: one[key], 'aria-label': `${title}: ${label}` });
      input.addEventListener('change', () => {
        if (input.checkValidity() && input.value !== '') changed(key, Number(input.value));
        else input.reportValidity();
      });
      return element('label', { class: 'small' }, label, input);
    };
    const remove = element('button', { type: 'button', class: 'remove', 'aria-label': `Remove flow ${index + 1}` }, '×');
    remove.disabled = this.state.flows.length === 1;
    remove.addEventListener('click', () => {
      this.state.flows.splice(index, 1);
      this.showFlows();
      this.changed('flows', false);
      document.getElementById('add').focus();
    });
    const where = this.state.second ? this.route(one, title, changed) : field('extra', 'extra round trip, ms', 1000);
    // A connection over both paths has two flows in the plots.
    const before = this.state.flows.slice(0, index).filter((other) => this.state.second && other.route === 'both').length;
    return element('li', { class: `flow flow${(index + before) % 6}` }, choice, remove, field('start', 'starts at, s', 1e5), where);
  }

  route(one, title, changed) {
    const input = element('select', { 'aria-label': `${title}: path` }, ...[['0', 'first'], ['1', 'second'], ['both', 'both']].map(([value, words]) => element('option', { value }, words)));
    input.value = String(one.route);
    input.addEventListener('change', () => changed('route', input.value === 'both' ? 'both' : Number(input.value)));
    return element('label', { class: 'small' }, 'path', input);
  }

  // Controllers in families; the rest of the table, and what was dropped, after them.
  options(chosen) {
    const known = new Set([...this.catalogue.map(({ name }) => name), ...Object.keys(POLICIES)]);
    known.delete('policy');
    const option = (name) => {
      const made = element('option', { value: name }, labelOf(name));
      made.selected = name === chosen;
      return made;
    };
    const groups = FAMILIES.map(([title, names]) => [title, names.filter((name) => known.delete(name))]);
    groups.push(['More', [...known].sort()], ['Yours', [...this.own.keys()]]);
    if (!groups.some(([, names]) => names.includes(chosen))) groups.push(['Missing', [chosen]]);
    return groups.filter(([, names]) => names.length).map(([label, names]) => element('optgroup', { label }, ...names.map(option)));
  }

  addFlow(cc = 'cubic') {
    if (this.state.flows.length < MOST_FLOWS) this.state.flows.push(flow(cc));
    else this.state.flows[MOST_FLOWS - 1].cc = cc;
    this.showFlows();
    this.changed('flows', false);
  }
}
