import { describe, expect, test } from 'vitest';
import { CLIENT_LOOK, alsoAway, clientState } from './clientState';
import { csv, tableOf } from './download';
import { countOf, verdictOf } from './health.svelte';
import { stateOfDrops, stateOfProblems } from './loss';
import { freshPassword } from './password';

describe('CSV', () => {
  test('quotes what has commas, quotes and lines', () =>
    expect(
      csv(
        ['a', 'b'],
        [
          ['x,y', 'say "hi"'],
          [1, null],
        ],
      ),
    ).toBe('a,b\r\n"x,y","say ""hi"""\r\n1,\r\n'));
  test('a client identifier cannot be a formula', () =>
    expect(csv(['id'], [['=1+1']])).toBe("id\r\n'=1+1\r\n"));
  test('objects have a column for each name, and values that are no texts are JSON', () =>
    expect(
      tableOf([
        { a: ['x', 'y'], b: null },
        { a: ['allow all pub #'], c: { d: 1 } },
      ]),
    ).toBe('a,b,c\r\nx y,,\r\n"[""allow all pub #""]",,"{""d"":1}"\r\n'));
});

describe('the state of a client', () => {
  test('is its worst problem', () =>
    expect(clientState({ connected: true, problems: ['slow', 'dropping'] })).toBe('dropping'));
  test('is connected or away without one', () => {
    expect(clientState({ connected: true, problems: [] })).toBe('connected');
    expect(clientState({ connected: false, problems: [] })).toBe('away');
  });
  test('tells of a client with a problem that it is away, too', () => {
    expect(alsoAway({ connected: false, problems: ['dropping'] })).toBe(true);
    expect(alsoAway({ connected: true, problems: ['dropping'] })).toBe(false);
    expect(alsoAway({ connected: false, problems: [] })).toBe(false);
  });
  test('a problem that this page does not know is none', () =>
    expect(clientState({ connected: true, problems: ['new one'] })).toBe('connected'));
  test('has a look', () => expect(CLIENT_LOOK.dropping).toBe('bad'));
});

describe('health', () => {
  test.each([
    [[], 'ok', 'ok'],
    [[{ severity: 'warning' }], 'ok', 'warn'],
    [[], 'warn', 'warn'],
    [[{ severity: 'warning' }], 'bad', 'bad'],
    [[{ severity: 'warning' }, { severity: 'critical' }], 'ok', 'bad'],
  ] as const)('%j with drops that are %s is %s', (alarms, drops, state) =>
    expect(verdictOf(alarms, drops)).toBe(state),
  );
  test('deliveries that are held up are a warning, and a thing to look at', () => {
    expect(verdictOf([], 'ok', true)).toBe('warn');
    expect(countOf([], 'ok', true)).toBe(1);
  });
  test('a queue that overflows is red, and what somebody wants dropped is amber', () => {
    const drops = (rates: Record<string, number>) => stateOfDrops((figure) => rates[figure] ?? null);
    expect(drops({ drops: 3, drops_expired: 2, drops_queue_full: 1 })).toBe('bad');
    expect(drops({ drops: 1, drops_slow_consumer: 1 })).toBe('bad');
    expect(drops({ drops: 3, drops_expired: 2, drops_offline: 1, drops_queue_full: 0 })).toBe('warn');
    expect(drops({ drops: 0 })).toBe('ok');
    expect(drops({})).toBe('ok');
  });
});

test('clients are as bad as the worst problem among them', () => {
  expect(
    stateOfProblems([
      { value: 'near_limit', clients: 4 },
      { value: 'slow', clients: 1 },
    ]),
  ).toBe('warn');
  expect(
    stateOfProblems([
      { value: 'dropping', clients: 1 },
      { value: 'slow', clients: 1 },
    ]),
  ).toBe('bad');
  expect(stateOfProblems([{ value: 'dropping', clients: 0 }])).toBe('ok');
});

test('drops and the full queue that is their cause are one thing', () => {
  const alarms = (...names: string[]) => names.map((name) => ({ name }));
  expect(countOf(alarms('drops_going_on', 'queues_nearly_full'), 'bad')).toBe(1);
  expect(countOf(alarms('cpu_busy', 'queues_nearly_full'), 'ok')).toBe(2);
  expect(countOf([], 'warn')).toBe(1);
  expect(countOf([], 'ok')).toBe(0);
});

describe('a password that is made', () => {
  test('has no characters that are taken for each other, and no bias', () => {
    let next = 0;
    const counting = (bytes: Uint8Array) => {
      bytes[0] = next;
      next = (next + 37) % 256;
    };
    expect(freshPassword(counting)).toMatch(/^(?:[^-0O1lIo]{5}-){3}[^-0O1lI]{5}$/);
    const last = freshPassword((bytes) => {
      bytes[0] = next % 2 === 0 ? 255 : 0;
      next += 1;
    });
    expect(last).toBe('aaaaa-aaaaa-aaaaa-aaaaa');
  });
});
