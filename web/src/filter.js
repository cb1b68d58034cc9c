import { make } from './dom.js';

// makeFilter keeps which values of each factor are wanted. Everything that a
// report shows is about a place in data.abouts, or about nothing (-1).
export function makeFilter(data, changed) {
  const wanted = data.factors.map((f) => f.values.map(() => true));
  let passes = data.abouts.map(() => true);

  function judge() {
    passes = data.abouts.map((said) => {
      for (let i = 0; i < said.length; i += 2) if (!wanted[said[i]][said[i + 1]]) return false;
      return true;
    });
  }

  const filter = {
    shows: (about) => about == null || about < 0 || passes[about],
    // any tells whether something is filtered out.
    any: () => wanted.some((w) => w.includes(false)),
    words: () =>
      data.factors
        .map((f, i) => (wanted[i].includes(false) ? f.name + ' ' + f.values.filter((_, k) => wanted[i][k]).join(', ') : ''))
        .filter(Boolean)
        .join('; '),
  };

  function update() {
    refresh();
    changed();
  }

  function refresh() {
    judge();
    for (const f of refreshers) f();
  }

  // unwanted are the values that are filtered out, by factor; setUnwanted filters
  // out those of them that there are, and draws nothing.
  filter.unwanted = () => Object.fromEntries(data.factors.map((f, i) => [f.name, f.values.filter((_, k) => !wanted[i][k])]));
  filter.setUnwanted = (unwanted) => {
    data.factors.forEach((f, i) => f.values.forEach((v, k) => { wanted[i][k] = !(unwanted[f.name] || []).includes(v); }));
    refresh();
  };

  const refreshers = [];
  const panels = data.factors.map((factor, i) => panel(factor, wanted[i], update, refreshers));
  const reset = make('button', { type: 'button', class: 'reset', onclick: () => { for (const w of wanted) w.fill(true); update(); } }, 'Show all');
  refreshers.push(() => { reset.hidden = !filter.any(); });
  reset.hidden = true;
  const status = make('span', { role: 'status', class: 'status' });
  filter.say = (words) => { status.textContent = words; };
  filter.element = make('div', { class: 'filter', role: 'group', 'aria-label': 'Filter by factor' }, make('span', { class: 'label' }, 'Show'), ...panels, reset, status);
  closeOutside(panels);
  return filter;
}

// panel is the list of one factor's values.
function panel(factor, wanted, update, refreshers) {
  const state = make('span', { class: 'state' });
  const boxes = factor.values.map((value, k) => {
    const box = make('input', { type: 'checkbox', checked: true, onchange: () => { wanted[k] = box.checked; update(); } });
    return box;
  });
  const set = (to) => () => { wanted.fill(to); update(); };
  const details = make(
    'details', { class: 'choice', 'data-factor': factor.name },
    make('summary', {}, factor.name + ' ', state),
    make(
      'fieldset', {}, make('legend', {}, factor.name),
      make('div', { class: 'values' }, ...factor.values.map((v, k) => make('label', {}, boxes[k], make('span', {}, v)))),
      make('div', { class: 'both' }, make('button', { type: 'button', onclick: set(true) }, 'all'), make('button', { type: 'button', onclick: set(false) }, 'none')),
    ),
  );
  const refresh = () => {
    boxes.forEach((b, k) => { b.checked = wanted[k]; });
    const on = factor.values.filter((_, k) => wanted[k]);
    state.textContent = on.length === wanted.length ? 'all ' + wanted.length : on.length === 1 ? on[0] : on.length + ' of ' + wanted.length;
    details.classList.toggle('partly', on.length < wanted.length);
  };
  refreshers.push(refresh);
  refresh();
  return details;
}

// closeOutside closes a list on Escape, and when another place is used.
function closeOutside(panels) {
  document.addEventListener('pointerdown', (e) => {
    for (const p of panels) if (p.open && !p.contains(e.target)) p.open = false;
  });
  for (const p of panels) {
    p.addEventListener('keydown', (e) => {
      if (e.key !== 'Escape' || !p.open) return;
      p.open = false;
      p.querySelector('summary').focus();
    });
    p.addEventListener('toggle', () => {
      if (p.open) for (const q of panels) if (q !== p) q.open = false;
    });
  }
}
