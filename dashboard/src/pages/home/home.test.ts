import { describe, expect, test } from 'vitest';
import { told } from './alarmsZh';
import { cureOf, isOpen, ranked } from './attention';
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
});

describe('what needs attention', () => {
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
