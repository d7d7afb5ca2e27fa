// Crosshair, tooltip and zoom of the time charts; copying. The page is complete without it.
(() => {
const $ = id => document.getElementById(id), tip = $('tip'), reset = $('reset'), button = $('copy');
const set = (element, attributes) => {
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  return element;
};
const make = (parent, tag, attributes) =>
  set(parent.appendChild(document.createElementNS('http://www.w3.org/2000/svg', tag)), attributes);
// A path is "M x y" and then steps "h dx v dy …" or "l dx dy dx dy …" in whole numbers, again after each gap.
const parse = d => d.split('M').slice(1).map(run => {
  const points = [];
  let x = 0, y = 0;
  for (const [, h, v, dx, dy] of run.matchAll(/h(-?\d+)|v(-?\d+)|(-?\d+) ?(-?\d+)/g)) points.push([x += +(h || dx || 0), y += +(v || dy || 0)]);
  return { points, end: run.endsWith('z') ? 'z' : '' };
});
const charts = [...document.querySelectorAll('svg[data-t]')].map(svg => {
  const { x, y, t, u, v } = svg.dataset, all = selector => [...svg.querySelectorAll(selector)];
  const [left, right] = x.split(' ').map(Number), [bottom, top, low, high, log] = y.split(' ').map(Number);
  return { svg, left, right, bottom, top, low, high, log, end: +t, unit: u, values: +v, ticks: svg.querySelector('.ticks'),
    lines: all('.p path').map(e => ({ e, runs: parse(e.getAttribute('d')), is: k => e.classList.contains(k) })),
    bands: all('rect.b').map(e => ({ e, x: +e.getAttribute('x'), w: +e.getAttribute('width') })), marks: all('g.at'),
    zone: make(svg, 'rect', { class: 'zone', y: top, height: bottom - top, width: 0 }),
    cross: make(svg, 'path', { class: 'cross' }) };
});
const end = charts.length ? charts[0].end : 0, long = end >= 7200;
let from = 0, to = end;
const figure = v => v >= 999.5 ? String(+v.toPrecision(3)).replace(/\B(?=(\d{3})+$)/g, ' ') : String(+v.toPrecision(v < 10 ? 2 : 3));
const value = (v, unit) => {
  if (unit === 'ns') return v < 999500 ? figure(v / 1e3) + 'µs' : v < 9995e5 ? figure(v / 1e6) + 'ms' : figure(v / 1e9) + 's';
  if (unit !== 'B') return figure(v) + unit;
  let i = 0;
  for (; v >= 1024 && i < 3; i++) v /= 1024;
  return figure(v) + ' ' + ['B', 'KiB', 'MiB', 'GiB'][i];
};
const pair = (big, small) => Math.floor(big) + ':' + String(Math.floor(small) % 60).padStart(2, '0');
const clock = s => long ? pair(s / 3600, s / 60) : pair(s / 60, s);
const place = (c, t) => c.left + (t - from) / (to - from) * (c.right - c.left);
const moved = (c, x) => place(c, (x - c.left) / (c.right - c.left) * end);
const clamp = (c, x) => Math.min(c.right, Math.max(c.left, x));
const draw = () => {
  const step = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 14400, 21600].find(s => s >= (long ? 60 : 1) && (to - from) / s <= 8) || (to - from) / 8;
  for (const c of charts) {
    for (const { e, runs } of c.lines)
      set(e, { d: runs.map(r => 'M' + r.points.map(p => Math.round(moved(c, p[0])) + ' ' + p[1]).join('L') + r.end).join('') });
    for (const b of c.bands) {
      const x = clamp(c, moved(c, b.x));
      set(b.e, { x, width: clamp(c, moved(c, b.x + b.w)) - x });
    }
    for (const e of c.marks) {
      const t = +e.dataset.at;
      set(e, { transform: `translate(${place(c, t) - c.left - t / end * (c.right - c.left)})` });
      e.style.display = t < from || t > to ? 'none' : '';
    }
    c.ticks.textContent = '';
    for (let t = Math.ceil(from / step) * step; t <= to; t += step)
      make(c.ticks, 'text', { class: 'v c', x: place(c, t), y: c.values }).textContent = clock(t);
    c.svg.classList.toggle('zoom', from > 0 || to < end);
  }
  reset.disabled = from === 0 && to === end;
};
const time = (c, event) => {
  const box = c.svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * c.svg.viewBox.baseVal.width;
  return from + (clamp(c, x) - c.left) / (c.right - c.left) * (to - from);
};
const read = (c, line, x) => {
  let y;
  for (const { points } of line.runs) {
    const upper = line.is('h') ? points.slice(0, points.length / 2) : line.is('gen') ? points.slice(0, -2) : points;
    if (x <= upper.at(-1)[0]) y ??= upper.findLast(p => p[0] <= x)?.[1];
  }
  const part = (c.bottom - y) / (c.bottom - c.top);
  return y === undefined ? '–' : value(c.log ? c.low * (c.high / c.low) ** part : c.low + part * (c.high - c.low), c.unit);
};
const show = (c, event, t) => {
  for (const o of charts) set(o.cross, { d: `M${place(o, t)} ${o.top}V${o.bottom}` });
  const x = c.left + t / end * (c.right - c.left);
  tip.textContent = [clock(t) + (long ? pair(0, t).slice(1) : ''), ...c.lines.map(l => l.e.dataset.n.padEnd(10) + read(c, l, x))].join('\n');
  tip.hidden = false;
  tip.style.left = Math.min(event.clientX + 16, innerWidth - tip.offsetWidth) + 'px';
  tip.style.top = event.clientY + 24 + 'px';
};
for (const c of charts) {
  let start = null;
  const on = (name, act) => c.svg.addEventListener(name, act);
  const range = event => [start, time(c, event)].sort((a, b) => a - b);
  const stop = () => { start = null; set(c.zone, { width: 0 }); };
  on('pointerdown', e => { if (!e.button) { start = time(c, e); c.svg.setPointerCapture(e.pointerId); } });
  on('pointermove', e => {
    show(c, e, time(c, e));
    if (start === null) return;
    const [x, end] = range(e).map(t => place(c, t));
    set(c.zone, { x, width: end - x });
  });
  on('pointerup', e => {
    const [a, b] = start === null ? [0, 0] : range(e);
    stop();
    if (b - a > (to - from) / 50) { from = a; to = b; draw(); }
  });
  on('pointercancel', stop);
  on('pointerleave', () => { tip.hidden = true; for (const o of charts) set(o.cross, { d: '' }); });
}
for (const e of document.querySelectorAll('.tools')) e.hidden = !end && e.contains(reset);
if (reset) { reset.disabled = true; reset.onclick = () => { from = 0; to = end; draw(); }; }
if (button) button.onclick = async () => {
  const text = $('markdown');
  text.closest('details').open = true;
  text.select();
  try { await navigator.clipboard.writeText(text.value); } catch { document.execCommand('copy'); }
  button.textContent = 'Copied';
};
})();
