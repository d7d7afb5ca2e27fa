import { describe, expect, test } from 'vitest';
import { told } from './alarmsZh';
import type { Silence } from '../../ui/silence';
import { verdictOf } from '../../ui/health.svelte';
import { type Known, cureOf, headlineOf, isOpen, ranked as rankedOf } from './attention';
import { addressOf, isLocal, listenCommand, program, sendCommand, simulateCommand } from './snippets';
import chinese from './zh';

const alarm = (name: string, severity: string) => ({
  name,
  severity,
  what: 'w',
  fix: 'f',
  of: null,
  raised_at: '',
  arguments: {},
  commands: [],
  requests: [],
});

describe('alarms in Chinese', () => {
  const known = Object.keys(chinese).filter((key) => /^alarm\.[a-z_]+$/.test(key));
  test('each has a sentence of its own, with its figures', () => {
    expect(known).toHaveLength(17);
    const said = known.map((key) => told(alarm(key.slice('alarm.'.length), 'warning')));
    expect(said).not.toContain(null);
    expect(new Set(said.map((one) => one?.what)).size).toBe(17);
  });
  test('a full queue of one client that is away is told apart from others', () => {
    const one = { clients: 1, client_id: 'a', queued_messages: 1000, queue_limit: 1000, queue_percent: 100 };
    const of = (values: object) =>
      told({ name: 'queues_nearly_full', of: null, arguments: { ...values } })?.what;
    expect(of({ ...one, away_secs: 5 })).toContain('该客户端离线');
    expect(of({ ...one, away_secs: null })).toContain('一个客户端的队列已满');
    expect(of({ ...one, clients: 3, queue_percent: 90 })).toContain('3 个客户端');
  });
  test('the disk and a listener are told apart from the storage and the node', () => {
    const of = (name: string, of: string | null) => told({ name, of, arguments: {} })?.what;
    expect(of('disk_nearly_full', 'free')).toContain('node.data_dir');
    expect(of('disk_nearly_full', 'max_disk')).toContain('storage.max_disk');
    expect(of('connections_near_limit', null)).toContain('limits.connections');
    expect(of('connections_near_limit', 'mqtts')).toContain('mqtts');
    expect(of('of_a_later_version', null)).toBeUndefined();
  });
  test('drops and refusals have their reasons, with numbers if there are several', () => {
    const of = (name: string, ...reasons: [string, number][]) =>
      told({
        name,
        of: null,
        arguments: {
          messages: 1500,
          seconds: 60,
          reasons: reasons.map(([reason, messages]) => ({ reason, messages })),
        },
      })?.what;
    expect(of('refusals_going_on', ['not_allowed', 1500])).toMatch(/条发布：规则禁止$/);
    expect(of('refusals_going_on', ['queues_full', 1000], ['of_a_later_version', 500])).toMatch(
      /条发布：没有接收者有空间 1\u202f000 条；of_a_later_version 500 条$/,
    );
    expect(of('drops_going_on', ['queue_full', 900], ['offline', 600])).toMatch(
      /条消息：客户端队列已满 900 条；QoS 0，客户端离线 600 条$/,
    );
    expect(of('drops_going_on')).toMatch(/条消息$/);
  });
});

describe('what needs attention', () => {
  const ranked = (
    alarms: Known['alarms'],
    problems: NonNullable<Known['problems']> = [],
    troubled: NonNullable<Known['troubled']> = [],
    open = false,
  ) =>
    rankedOf({
      alarms,
      drops: problems.some((one) => one.value === 'dropping') ? 'bad' : 'ok',
      problems,
      troubled,
      open,
    });
  test('has the worst first', () =>
    expect(
      ranked(
        [alarm('cpu_busy', 'warning'), alarm('storage_full', 'critical')],
        [{ value: 'near_limit', clients: 1 }],
      ).map((item) => item.state),
    ).toEqual(['bad', 'warn', 'info']));
  test('says a thing once', () =>
    expect(ranked([alarm('queues_nearly_full', 'warning')], [{ value: 'queue', clients: 2 }])).toHaveLength(
      1,
    ));
  const archive = { client_id: 'archive', connected: false, problems: ['queue', 'dropping'] };
  test('tells one cause once, with the client that it is', () => {
    const alarms = [alarm('queues_nearly_full', 'warning'), alarm('drops_going_on', 'warning')];
    const problems = [
      { value: 'queue', clients: 1 },
      { value: 'dropping', clients: 1 },
    ];
    expect(ranked(alarms, problems, [archive])).toMatchObject([
      { kind: 'clients', problem: 'dropping', one: archive },
    ]);
    // A queue of another client is another cause.
    const other = { client_id: 'b', connected: true, problems: ['queue'] };
    const two = [
      { value: 'queue', clients: 2 },
      { value: 'dropping', clients: 1 },
    ];
    expect(ranked(alarms, two, [archive, other]).map((item) => item.state)).toEqual(['bad', 'warn']);
    // Drops for which no client is known keep their alarm.
    expect(ranked(alarms, [])).toHaveLength(2);
  });
  test('says that anybody may connect, unless only this machine can', () => {
    const at = (bind: string, transport = 'tcp') => ({ transport, state: 'open', bind: [bind] });
    expect(isOpen(true, 'allowed', [at('0.0.0.0:1883')])).toBe(true);
    expect(isOpen(true, 'allowed', [at('127.0.0.1:1883'), at('[::1]:1883')])).toBe(false);
    expect(isOpen(true, 'allowed', [at('0.0.0.0:8080', 'http'), at('127.0.0.1:1883')])).toBe(false);
    expect(isOpen('loopback', 'allowed', [at('0.0.0.0:1883')])).toBe(false);
    expect(isOpen(true, 'denied', [at('0.0.0.0:1883')])).toBe(false);
    expect(ranked([], [], [], true)).toEqual([{ kind: 'open', state: 'info' }]);
  });
  test.each(['bad', 'warn'] as const)(
    'drops that are %s are so in the bar, the sentence and the list',
    (drops) => {
      const alarms = [alarm('drops_going_on', 'warning')];
      const problems = [{ value: 'dropping', clients: 2 }];
      for (const known of [{ alarms, problems }, { alarms }, { alarms: [], problems }, { alarms: [] }]) {
        expect(rankedOf({ ...known, drops }).map((item) => item.state)).toEqual([drops]);
        expect(verdictOf(known.alarms, drops)).toBe(drops);
        const headline = { items: rankedOf({ ...known, drops }), drops, clients: 5 };
        expect(headlineOf({ ...headline, dropping: 3 }).about).toBe('drops');
        expect(headlineOf({ ...headline, dropping: 0 }).about).toBe('dropped');
      }
    },
  );
  test('a client that lost a message is amber when nothing is lost any more', () =>
    expect(
      rankedOf({ alarms: [], drops: 'ok', problems: [{ value: 'dropping', clients: 1 }] })[0]?.state,
    ).toBe('warn'));
  const silence = (why: Silence['why'], clients = 0): Silence => ({
    why,
    clients,
    quiet: { seconds: 60, messages: 600, lost: false, sinceMs: null },
  });
  test('deliveries that are held up tell of the slow clients, too', () => {
    const known = { alarms: [], drops: 'ok' as const, problems: [{ value: 'slow', clients: 2 }] };
    expect(rankedOf({ ...known, silence: silence('stalled', 2) }).map((item) => item.kind)).toEqual([
      'silence',
    ]);
    expect(rankedOf(known).map((item) => item.kind)).toEqual(['clients']);
    expect(rankedOf({ ...known, silence: silence('nobody') }).map((item) => item.state)).toEqual([
      'warn',
      'info',
    ]);
  });
  const said = (known: Known, { dropping = 0, clients = 5 } = {}) => {
    const items = rankedOf(known);
    return headlineOf({ items, drops: known.drops, dropping, clients });
  };
  test('the sentence is about the worst', () => {
    const known = { alarms: [], drops: 'ok' } as const;
    const [warning, critical] = [alarm('cpu_busy', 'warning'), alarm('storage_full', 'critical')];
    const stalled = silence('stalled', 2);
    expect(headlineOf({ items: null, drops: 'ok', dropping: 0, clients: 5 }).about).toBe('unknown');
    expect(said(known).about).toBe('ok');
    expect(said(known, { clients: 0 }).about).toBe('nobody');
    expect(said({ ...known, alarms: [warning] }).about).toBe('alarm');
    expect(said({ ...known, alarms: [warning], silence: stalled }).about).toBe('stalled');
    expect(said({ ...known, silence: stalled, drops: 'bad' }, { dropping: 1 }).about).toBe('drops');
    expect(said({ ...known, alarms: [warning, critical], drops: 'bad' }, { dropping: 1 })).toMatchObject({
      about: 'alarm',
      item: { alarm: critical },
      others: 2,
    });
  });
  test.each([
    ['queues_nearly_full', 'queue'],
    ['drops_going_on', 'dropping'],
  ])('an alarm of %s that clients stand for is the sentence and the list', (name, problem) => {
    for (const clients of [0, 5]) {
      const alarms = [alarm(name, 'warning')];
      const known: Known = { alarms, drops: 'ok', problems: [{ value: problem, clients: 2 }] };
      const [item] = rankedOf(known);
      expect(said(known, { clients })).toEqual({ about: 'alarm', item, others: 0 });
      expect(item).toMatchObject({ kind: 'clients', state: 'warn', problem });
      expect(verdictOf(alarms, 'ok')).toBe('warn');
    }
  });
  test('no alarm is left out of the sentence, whatever clients are known', () => {
    const sets = [[], ['queue'], ['dropping'], ['queue', 'dropping']];
    for (const raised of [
      ['queues_nearly_full'],
      ['drops_going_on'],
      ['queues_nearly_full', 'drops_going_on'],
    ])
      for (const has of sets) {
        const alarms = raised.map((name) => alarm(name, 'warning'));
        const problems = has.map((value) => ({ value, clients: 1 }));
        const troubled = [{ client_id: 'a', connected: false, problems: has }];
        for (const clients of [0, 5])
          expect(said({ alarms, drops: 'ok', problems, troubled }, { clients }).about).toBe('alarm');
      }
  });
  test('publishers that are refused for full queues are told by the clients whose queues are full', () => {
    const refused = (...reasons: string[]) => ({
      ...alarm('refusals_going_on', 'warning'),
      arguments: { reasons: reasons.map((reason) => ({ reason, messages: 3 })) },
    });
    const kinds = (raised: ReturnType<typeof refused>, clients: number) =>
      rankedOf({ alarms: [raised], drops: 'bad', problems: [{ value: 'dropping', clients }] }).map(
        (item) => item.kind,
      );
    expect(kinds(refused('queues_full'), 1)).not.toContain('alarm');
    expect(kinds(refused('queues_full'), 0)).toContain('alarm');
    expect(kinds(refused('queues_full', 'disk_full'), 1)).toContain('alarm');
    expect(kinds(refused(), 1)).toContain('alarm');
  });
  test('a kind of problem without clients is none', () =>
    expect(ranked([], [{ value: 'slow', clients: 0 }])).toEqual([]));
  test('knows the cure, and nothing for alarms of later versions', () => {
    expect(cureOf('certificate_expired')).toBe('certificates');
    expect(cureOf('refusals_going_on')).toBe('refused');
    expect(cureOf('something_new')).toBe('none');
  });
});

describe('the first message', () => {
  const at = { host: 'edge-1', port: 1883, tls: false };
  test('goes to the TCP listener, at the host of the page', () =>
    expect(addressOf(['mqtts://0.0.0.0:8883', 'mqtt://0.0.0.0:1884'], 'edge-1')).toEqual({
      ...at,
      port: 1884,
    }));
  test('goes to TLS if there is nothing else', () =>
    expect(addressOf(['mqtts://edge-1'], 'x')).toEqual({ host: 'edge-1', port: 8883, tls: true }));
  test('an IPv6 address loses its brackets', () =>
    expect(addressOf(['mqtt://[::1]:1883'], 'x')?.host).toBe('::1'));
  test('has no address without a listener of MQTT', () =>
    expect(addressOf(['http://edge-1:80'], 'x')).toBeNull());
  test('the usual port is not named', () => {
    expect(listenCommand(at)).toBe("mosquitto_sub -h edge-1 -t 'hello/#' -v");
    expect(sendCommand({ ...at, port: 1884 })).toContain('-p 1884');
  });
  test.each(['python', 'js', 'esp32'] as const)('%s names host and port', (way) => {
    expect(program(way, { ...at, port: 1884 })).toContain('edge-1');
    expect(program(way, { ...at, port: 1884 })).toContain('1884');
  });
  test('the simulation names the broker', () =>
    expect(simulateCommand(at)).toContain('--target mqtt://edge-1:1883'));
  test('knows addresses of this machine', () => {
    expect(isLocal('127.0.0.2')).toBe(true);
    expect(isLocal('edge-1')).toBe(false);
  });
});
