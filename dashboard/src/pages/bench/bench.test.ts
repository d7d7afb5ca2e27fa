import { describe, expect, test } from 'vitest';
import type { ComparedRow, Comparison, Sample, Threshold } from '../../api/bench';
import { conditionOf, measureOf, measured } from '../../format/measures';
import { type Form, formOf, newForm, newGroup, tomlOf } from './form';
import { holdOf, lengthSecs, partsOf, plannedStages, progressOf, spanSecs } from './stages';
import { boundsOf, findingOf, judgementOf, nameParts, reachOf, standingOf, turned } from './standing';
import { parseToml, quoted } from './toml';
import { wantedOf } from './wanted';
import { aligned, appended, columnsOf, errorsOf, held, newest } from './trail';

const FILE = `# A scenario.
name = "mine"
target  = "mqtt://127.0.0.1:1883"   # a broker
version = 5
keep_alive = "300s"
stages  = ["ramp 30s", "warmup 10s",
  "hold 5m", "drain 10s"]

[groups.devices]
clients = 50_000
publish = { topic = "test/{i}", rate = "1/s", qos = 1, payload = "random:16B" }

[groups.backend]
clients   = 500
subscribe = { filter = '$share/bench/test/#', qos = 1 }

[thresholds]
"e2e.p99"        = "< 50ms"
delivered        = "== 100%"
`;
const formed = (text: string): Form => {
  const found = formOf(text);
  if (!('form' in found)) throw new Error(JSON.stringify(found));
  return found.form;
};

describe('TOML', () => {
  test('of a scenario is read', () =>
    expect(parseToml(FILE)).toMatchObject({
      version: 5,
      stages: ['ramp 30s', 'warmup 10s', 'hold 5m', 'drain 10s'],
      groups: {
        devices: { clients: 50_000, publish: { topic: 'test/{i}', qos: 1 } },
        backend: { subscribe: { filter: '$share/bench/test/#' } },
      },
      thresholds: { 'e2e.p99': '< 50ms', delivered: '== 100%' },
    }));
  test('has lists of tables, dotted keys and texts of several lines', () =>
    expect(
      parseToml(
        '[[faults]]\nat = "1s"\ndisconnect.share = 0.5\n[[faults]]\nat = "2s"\npayload = """\nab\\u0041"""',
      ),
    ).toEqual({
      faults: [
        { at: '1s', disconnect: { share: 0.5 } },
        { at: '2s', payload: 'abA' },
      ],
    }));
  test.each([
    ['a = ', 1],
    ['a = 1\nb = "x', 2],
    ['a = 1\na = 2', 2],
    ['a = 1 b = 2', 1],
    ['\n\n[x', 3],
    ['a = nonsense', 1],
  ])('%j is refused with its line', (text, line) => expect(formOf(text)).toEqual({ line }));
  test('a key like those of all objects is a key', () =>
    expect(Object.keys(parseToml('toString = 1'))).toEqual(['toString']));
  test('texts are written so that they are read again', () => {
    for (const text of ['a"b\\c', 'line\nline', '\u0001', 'ünï', "it's"])
      expect(parseToml(`x = ${quoted(text)}`)).toEqual({ x: text });
  });
});

describe('a form', () => {
  test('has what the file says', () => {
    const form = formed(FILE);
    expect(form).toMatchObject({ version: '5', holdSpan: '5m', rampSpan: '30s' });
    expect(form.groups.map(({ name, clients, does }) => [name, clients, does])).toEqual([
      ['devices', '50000', 'publish'],
      ['backend', '500', 'subscribe'],
    ]);
    expect(form.limits).toEqual([
      { what: 'e2e.p99', condition: '< 50ms' },
      { what: 'delivered', condition: '== 100%' },
    ]);
  });
  test('becomes a file whose form becomes the same file', () => {
    for (const form of [newForm(), formed(FILE)]) expect(tomlOf(formed(tomlOf(form)))).toBe(tomlOf(form));
  });
  test('becomes a file that says the same', () =>
    expect(parseToml(tomlOf(formed(FILE)))).toEqual(parseToml(FILE)));
  test('refuses what it has no field for, and names it', () =>
    expect(
      formOf(
        `${FILE}\n[groups.x]\nclients = 1\nwill = { topic = "t" }\npublish = { topic = "t", window = 2 }`,
      ),
    ).toEqual({ left: ['groups.x.will', 'groups.x.publish.window'] }));
  test('refuses a payload that is no text', () =>
    expect(formOf('[groups.a]\nclients = 1\npublish = { topic = "t", payload = { json = "{}" } }')).toEqual({
      left: ['groups.a.publish.payload'],
    }));
  test('a group of a name with spaces is written in quotes', () => {
    const form = newForm();
    form.groups = [{ ...newGroup([]), name: 'my devices' }];
    expect(tomlOf(form)).toContain('[groups."my devices"]');
  });
  test('a new group has a name of its own', () => {
    const one = newGroup([]);
    expect(newGroup([{ ...one, name: 'group-2' }]).name).toBe('group-3');
  });
});

describe('figures by their name', () => {
  test.each([
    ['e2e.p99', 'ms'],
    ['e2e.p99.9', 'ms'],
    ['delivered', 'share'],
    ['connect.errors', 'count'],
    ['broker.rss', 'bytes'],
    ['rate.received', 'rate'],
    ['broker.cores', 'cores'],
  ] as const)('%s is %s', (name, measure) => expect(measureOf(name)).toBe(measure));
  test.each([
    ['< 50ms', '<', 50],
    ['<= 1.5s', '<=', 1500],
    ['== 100%', '==', 1],
    ['< 1GB', '<', 1e9],
    ['>= 1_000/s', '>=', 1000],
    ['== 0', '==', 0],
  ] as const)('the limit %s', (text, sign, value) =>
    expect(conditionOf(text)).toMatchObject({ sign, value }),
  );
  test('what is no limit is none', () => {
    expect(conditionOf('50ms')).toBeNull();
    expect(conditionOf('< 5 apples')).toBeNull();
    expect(conditionOf(null)).toBeNull();
  });
  test('all but a few is not all', () => {
    expect(measured(0.99999, 'share').value).toBe('>99.9');
    expect(measured(1, 'share').value).toBe('100');
  });
});

const th = (one: Partial<Threshold> & { what: string }): Threshold => ({
  limit: '',
  value: null,
  value_text: '',
  pass: null,
  ...one,
});

describe('how a run stands', () => {
  const verdict = (valid: boolean, pass: boolean) => ({ valid, pass, changed: false, reasons: [] });
  test.each([
    ['preparing', null, 'preparing'],
    ['running', null, 'running'],
    ['failed', null, 'broken'],
    ['stopped', verdict(true, true), 'stopped'],
    ['done', verdict(true, true), 'passed'],
    ['done', verdict(true, false), 'missed'],
    ['done', verdict(false, false), 'invalid'],
    ['done', null, 'done'],
  ] as const)('%s, %j: %s', (state, judged, standing) =>
    expect(standingOf({ state, verdict: judged })).toBe(standing),
  );
  test('a missed limit makes a running one a failing one, an open one does not', () => {
    const run = { state: 'running', verdict: null } as const;
    expect(standingOf(run, [th({ what: 'a', pass: null }), th({ what: 'b', pass: true })])).toBe('running');
    expect(standingOf(run, [th({ what: 'a', pass: false })])).toBe('failing');
  });
});

describe('limits', () => {
  test('turn with the samples', () =>
    expect(
      turned(
        [
          th({ what: 'e2e.p99', limit: '< 50ms', pass: null }),
          th({ what: 'lost', limit: '== 0', pass: true, value: 0 }),
        ],
        [th({ what: 'e2e.p99', value: 60, pass: false })],
      ),
    ).toEqual([
      th({ what: 'e2e.p99', limit: '< 50ms', value: 60, pass: false }),
      th({ what: 'lost', limit: '== 0', pass: true, value: 0 }),
    ]));
  test('say what is left and what is beyond', () => {
    expect(judgementOf(th({ what: 'e2e.p99', limit: '< 50ms', value: 3.9, pass: true })).spare).toBeCloseTo(
      46.1,
    );
    expect(
      judgementOf(th({ what: 'broker.rss', limit: '< 1GB', value: 1.1e9, pass: false })).spare,
    ).toBeCloseTo(-1e8);
    expect(judgementOf(th({ what: 'rate.sent', limit: '> 100/s', value: 150, pass: true })).spare).toBe(50);
    expect(
      judgementOf(th({ what: 'e2e.p99', limit: '< 50ms', value: 3.9e6, value_text: '3.9ms' })).spare,
    ).toBeCloseTo(46.1);
    expect(judgementOf(th({ what: 'delivered', limit: '== 100%', value: 1, pass: true })).spare).toBeNull();
  });
  test('that only the end tells are open until then', () =>
    expect(
      turned(
        [th({ what: 'delivered', limit: '== 100%' })],
        [th({ what: 'delivered', value: 0.999, pass: false })],
      ),
    ).toEqual([th({ what: 'delivered', limit: '== 100%', value: 0.999, pass: null })]));
  test('whose figure is withheld say why', () =>
    expect(
      judgementOf({
        what: 'e2e.p99',
        limit: '< 50ms',
        value: null,
        value_text: 'withheld: late',
        pass: null,
      }),
    ).toMatchObject({ value: null, text: 'withheld: late', state: 'off' }));
  test('without a value are open', () =>
    expect(judgementOf(th({ what: 'e2e.p99', limit: '< 50ms' }))).toMatchObject({
      state: 'off',
      value: null,
    }));
  test('are lines of the chart that has their figure', () =>
    expect(
      boundsOf(
        [
          th({ what: 'e2e.p99', limit: '< 50ms' }),
          th({ what: 'e2e.p50', limit: '> 1ms' }),
          th({ what: 'broker.rss', limit: '< 1GB' }),
        ],
        ['e2e.p50', 'e2e.p99'],
      ),
    ).toEqual([{ what: 'e2e.p99', value: 50, text: '50\u202fms' }]));
  test('names have two parts', () => {
    expect(nameParts('e2e.p99.9')).toEqual(['e2e', 'p99.9']);
    expect(nameParts('connect.errors')).toEqual(['connect.errors', '']);
  });
});

describe('a comparison', () => {
  const row = (what: string, verdict: ComparedRow['verdict'][number], delta = 0): ComparedRow => ({
    what,
    unit: 'ms',
    better: 'lower',
    values: [1, 1 + delta],
    delta_ratio: [delta],
    noise_ratio: [0.04],
    verdict: [verdict],
  });
  const of = (rows: ComparedRow[], why: string[] = []): Comparison => ({
    runs: [],
    rows,
    why_not_comparable: why,
    conclusions: [],
  });
  test('leads with the latency', () =>
    expect(findingOf(of([row('broker.rss', 'better'), row('e2e.p99', 'better')]), 1)).toMatchObject({
      kind: 'better',
      first: { what: 'e2e.p99' },
    }));
  test('is mixed if one figure is better and another worse', () =>
    expect(findingOf(of([row('broker.rss', 'worse'), row('e2e.p99', 'better')]), 1).kind).toBe('mixed'));
  test('has no winner within noise', () =>
    expect(findingOf(of([row('e2e.p99', 'same'), row('lost', 'unknown')]), 1).kind).toBe('same'));
  test('of a run that is not valid has no winner', () => {
    const bad = { verdict: { valid: false, pass: true, changed: false, reasons: [] } };
    const comparison = { ...of([row('e2e.p99', 'better')]), runs: [bad, bad] };
    expect(findingOf(comparison, 1)).toEqual({ kind: 'not valid', runs: [0, 1] });
  });
  test('of different conditions has no winner', () =>
    expect(findingOf(of([row('e2e.p99', 'better')], ['holds differ']), 1)).toEqual({
      kind: 'not comparable',
      why: 'holds differ',
    }));
  test('its scale has all changes, and leaves out those that would press the others together', () => {
    expect(reachOf([row('a', 'same', 0.01), row('b', 'better', -0.12)], 1)).toBe(0.2);
    expect(reachOf([row('a', 'same', 0.01), row('b', 'worse', 40)], 1)).toBe(0.05);
  });
});

describe('samples', () => {
  const sample = (n: number, more: Partial<Sample> = {}): Sample => ({
    n,
    at_secs: n,
    stage: 'hold',
    clients: 0,
    offered_per_sec: 0,
    sent_per_sec: 0,
    received_per_sec: 0,
    latency: null,
    p50_ms: null,
    p99_ms: null,
    p999_ms: null,
    max_ms: null,
    errors: {},
    broker_cores: null,
    broker_rss_bytes: null,
    generator_cores: null,
    thresholds: [],
    marks: [],
    histogram: [],
    ...more,
  });
  test('that came twice are there once', () =>
    expect(appended([sample(1), sample(2)], [sample(2), sample(3)]).map(({ n }) => n)).toEqual([1, 2, 3]));
  test('a missing stretch is a gap', () => {
    const { at, columns } = columnsOf(
      [
        sample(1, { clients: 1 }),
        sample(2, { clients: 2 }),
        sample(3, { clients: 3 }),
        sample(9, { clients: 9 }),
      ],
      [({ clients }) => clients],
    );
    expect(at).toEqual([1000, 2000, 3000, 4000, 9000]);
    expect(columns[0]).toEqual([1, 2, 3, null, 9]);
  });
  test('samples of a long run that are ten seconds apart are no gaps', () =>
    expect(
      columnsOf(
        [10, 20, 30].map((n) => sample(n)),
        [],
      ).at,
    ).toEqual([10_000, 20_000, 30_000]));
  test('errors are summed by reason', () =>
    expect(
      errorsOf([
        sample(1, { errors: { refused: 2 } }),
        sample(2, { errors: { timeout: 5, refused: 1 } }),
        sample(3),
      ]),
    ).toEqual([
      { reason: 'timeout', count: 5, firstSecs: 2, lastSecs: 2 },
      { reason: 'refused', count: 3, firstSecs: 1, lastSecs: 2 },
    ]));
  test('the newest value is the last that is known', () => {
    expect(newest([sample(1, { p99_ms: 3 }), sample(2, { p99_ms: null })], (one) => one.p99_ms)).toBe(3);
    expect(newest([], (one) => one.p99_ms)).toBeNull();
  });
  test('of the hold count from its beginning, and runs stand over each other', () => {
    const one = held([sample(5), sample(6, { p99_ms: 1 }), sample(7, { p99_ms: 2 })], 5, 7);
    const other = held([sample(3), sample(4, { p99_ms: 9 })], 3, 8);
    expect(aligned([one, other], (found) => found.p99_ms)).toEqual({
      at: [1000, 2000],
      columns: [
        [1, 2],
        [9, null],
      ],
    });
  });
});

describe('the stages of a run', () => {
  const stages = [
    { name: 'ramp', from_secs: 0, to_secs: 10 },
    { name: 'warm-up', from_secs: 10, to_secs: 10 },
    { name: 'hold', from_secs: 10, to_secs: 70 },
    { name: 'drain', from_secs: 70, to_secs: 75 },
  ];
  test('that took no time are left out', () =>
    expect(partsOf(stages).map(({ name }) => name)).toEqual(['ramp', 'hold', 'drain']));
  test('are done, now, or next', () => {
    const at = (secs: number, ended = false) => progressOf(partsOf(stages), secs, ended).map(({ is }) => is);
    expect(at(40)).toEqual(['done', 'now', 'next']);
    expect(at(0)).toEqual(['next', 'next', 'next']);
    expect(at(75)).toEqual(['done', 'done', 'done']);
    expect(at(40, true)).toEqual(['done', 'done', 'done']);
    expect(progressOf(partsOf(stages), 25, false)[1]?.share).toBe(0.25);
  });
  test('make the time axis: all of it while the run goes on, then what there is', () => {
    const run = { planned_secs: 80 };
    expect(lengthSecs(run, [{ at_secs: 1 }], false)).toBe(80);
    expect(lengthSecs(run, [{ at_secs: 33 }], true)).toBe(33);
    expect(lengthSecs({ planned_secs: 0 }, [], false)).toBe(1);
  });
  test('of a run that goes on are those of its scenario, from where they began', () => {
    const run = {
      planned_secs: 76,
      duration_secs: 60,
      toml: 'stages = ["warmup 5s", "hold 1m", "drain 10s"]',
      stages: [
        { name: 'ramp', from_secs: 0, to_secs: 1 },
        { name: 'warm-up', from_secs: 0.8, to_secs: 5.8 },
        { name: 'hold', from_secs: 5.8, to_secs: 9 },
      ],
    };
    expect(plannedStages(run)).toEqual([
      { name: 'ramp', from_secs: 0, to_secs: 0.8 },
      { name: 'warm-up', from_secs: 0.8, to_secs: 5.8 },
      { name: 'hold', from_secs: 5.8, to_secs: 65.8 },
      { name: 'drain', from_secs: 65.8, to_secs: 75.8 },
    ]);
    expect(plannedStages({ ...run, toml: 'stages = [' })).toEqual(run.stages);
    // Somebody has extended it by a minute.
    const longer = plannedStages({ ...run, planned_secs: 136, duration_secs: 120 });
    expect(longer.at(-1)).toEqual({ name: 'drain', from_secs: 125.8, to_secs: 135.8 });
    expect(longer[0]?.to_secs).toBe(0.8);
  });
  test.each([
    ['90s', 90],
    ['1h30m', 5400],
    ['500ms', 0.5],
    ['1.5min', 90],
    ['7', 7],
    ['soon', null],
    ['5m soon', null],
  ])('the span %s', (text, secs) => expect(spanSecs(text)).toBe(secs));
  test('one of them counts', () => expect(holdOf(stages)).toMatchObject({ fromSecs: 10, toSecs: 70 }));
});

describe('what a new run asks for', () => {
  const where = { target: '', hold: '', clients: '', rate: '', name: '', note: '' };
  const login = { username: '', password: '' };
  test('is nothing while nothing is chosen', () => {
    expect(wantedOf({ scenario: '' }, where, login)).toBeNull();
    expect(wantedOf({ toml: ' \n' }, where, login)).toBeNull();
  });
  test('leaves out empty fields and what is no number', () =>
    expect(
      wantedOf({ scenario: 'p2p-1K' }, { ...where, hold: '30', clients: 'many', note: ' n ' }, login),
    ).toEqual({ scenario: 'p2p-1K', duration_secs: 30, note: 'n' }));
  test('has a text of one’s own as it is', () =>
    expect(wantedOf({ toml: 'version = 5\n' }, where, { username: 'u', password: 'p' })).toEqual({
      toml: 'version = 5\n',
      username: 'u',
      password: 'p',
    }));
});
