// The test client: MQTT.js over a WebSocket of this page's own origin. It stays while other pages are looked at. When
// its person signs out, it ends and forgets everything.
import type { IClientOptions, IConnackPacket, IDisconnectPacket, IPublishPacket, MqttClient } from 'mqtt';
import { session } from '../../../api/session.svelte';
import { type PublishForm, bounded, encode, matches, secondsOf, userProperties } from './forms';

export type Version = 5 | 4;

export interface Will {
  topic: string;
  payload: string;
  qos: 0 | 1 | 2;
  retain: boolean;
  delay: string;
}

/** How the client connects. The password is no part of it: only the library keeps that, to connect again. */
export interface ConnectForm {
  address: string;
  clientId: string;
  user: string;
  version: Version;
  clean: boolean;
  keepAlive: string;
  expiry: string;
  receiveMaximum: string;
  userProperties: string;
  will: Will | null;
}

export type State =
  | { kind: 'off'; reason: string }
  | { kind: 'loading' }
  | { kind: 'connecting'; lost: boolean; attempt: number; reason: string }
  | { kind: 'online'; sinceMs: number; sessionPresent: boolean; given: readonly [string, string][] };

export interface Subscription {
  filter: string;
  qos: 0 | 1 | 2;
  noLocal: boolean;
  retainAsPublished: boolean;
  identifier: number | null;
  /** What the broker granted; null before it answers, text if it refuses. */
  granted: number | string | null;
  received: number;
  muted: boolean;
}

export interface Row {
  key: number;
  way: 'in' | 'out';
  atMs: number;
  topic: string;
  /** The payload, or its beginning. */
  bytes: Uint8Array<ArrayBuffer>;
  /** Bytes of the whole payload. */
  whole: number;
  qos: number;
  retain: boolean;
  dup: boolean;
  properties: readonly [string, string][];
  responseTopic: string;
  correlation: string;
  /** What became of a message that was sent. */
  outcome: 'sending' | 'sent' | 'nobody' | 'refused' | null;
  /** Why it was refused. */
  detail: string;
}

/** Messages that the page keeps. */
export const KEPT = 500;
/** Bytes of a payload that the page keeps. */
export const PAYLOAD_MOST = 256 * 1024;

/** Bytes for the library, whose types ask for those of Node and which takes any. */
function forLibrary(bytes: Uint8Array): Buffer;
function forLibrary(bytes: unknown): unknown {
  return bytes;
}

const hex = (bytes: Uint8Array) => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

class TestClient {
  state = $state.raw<State>({ kind: 'off', reason: '' });
  subscriptions = $state.raw<readonly Subscription[]>([]);
  rows = $state.raw<readonly Row[]>([]);
  received = $state(0);
  forgotten = $state(0);
  paused = $state(false);
  waiting = $state(0);
  used = $state.raw<ConnectForm | null>(null);

  #client: MqttClient | null = null;
  #held: Row[] = [];
  #frame: ReturnType<typeof setTimeout> | null = null;
  #next = 0;
  #reason = '';
  #attempt = 0;
  #identifier = 0;
  #turn = 0;

  constructor() {
    session.whenPersonChanges(() => this.forget());
  }

  get on(): boolean {
    return this.state.kind !== 'off';
  }

  #is(kind: State['kind']): boolean {
    return this.state.kind === kind;
  }

  async connect(form: ConnectForm, password: string): Promise<void> {
    this.end();
    this.used = form;
    this.state = { kind: 'loading' };
    this.subscriptions = [];
    this.#reason = '';
    this.#attempt = 0;
    this.#turn += 1;
    const turn = this.#turn;
    // The library comes only when somebody connects.
    const { default: mqtt } = await import('mqtt');
    if (turn !== this.#turn || !this.#is('loading')) return;
    const client = mqtt.connect(form.address, optionsOf(form, password));
    this.#client = client;
    this.state = { kind: 'connecting', lost: false, attempt: 1, reason: '' };
    client.on('connect', (packet) => this.#connected(packet));
    client.on('reconnect', () => {
      this.#attempt += 1;
      const lost = this.state.kind === 'connecting' && this.state.lost;
      const attempt = lost ? this.#attempt : this.#attempt + 1;
      this.state = { kind: 'connecting', lost, attempt, reason: this.#reason };
    });
    client.on('disconnect', (packet: IDisconnectPacket) => {
      this.#reason = packet.properties?.reasonString ?? `DISCONNECT ${code(packet.reasonCode)}`;
    });
    client.on('error', (error) => {
      this.#reason = error.message;
      // The broker has refused: another attempt is of no use.
      if ('code' in error && typeof error.code === 'number') this.#over(error.message);
    });
    client.on('close', () => {
      if (this.#client === client && this.state.kind === 'online')
        this.state = { kind: 'connecting', lost: true, attempt: 1, reason: this.#reason };
    });
    client.on('message', (topic, payload, packet) => this.#take(topic, payload, packet));
  }

  /** Ends the connection: an orderly DISCONNECT, or a cut one, after which the broker sends the will. */
  end(cut = false): void {
    const client = this.#client;
    if (client === null && this.state.kind === 'off') return;
    this.#over('');
    if (!client) return;
    client.removeAllListeners();
    client.on('error', () => undefined);
    if (cut) {
      client.options.reconnectPeriod = 0;
      client.stream.destroy();
    }
    client.end(cut);
  }

  /** Ends the connection, and forgets how it was made and what came by it. */
  forget(): void {
    this.end();
    this.pause(false);
    this.clear();
    this.used = null;
    this.received = 0;
    this.state = { kind: 'off', reason: '' };
  }

  #over(reason: string): void {
    const client = this.#client;
    this.#client = null;
    this.state = { kind: 'off', reason };
    this.subscriptions = [];
    if (reason !== '' && client) client.end(true);
  }

  #connected(packet: IConnackPacket): void {
    this.#attempt = 0;
    this.#reason = '';
    this.state = {
      kind: 'online',
      sinceMs: Date.now(),
      sessionPresent: packet.sessionPresent,
      given: listed(packet.properties ?? {}),
    };
  }

  async subscribe(
    filter: string,
    options: { qos: 0 | 1 | 2; noLocal: boolean; retainAsPublished: boolean },
  ): Promise<void> {
    const client = this.#client;
    if (!client) return;
    const v5 = this.used?.version === 5;
    this.#identifier += 1;
    const identifier = v5 ? this.#identifier : null;
    const subscription: Subscription = {
      filter,
      ...options,
      identifier,
      granted: null,
      received: 0,
      muted: false,
    };
    this.subscriptions = [...this.subscriptions.filter((one) => one.filter !== filter), subscription];
    let granted: number | string;
    try {
      const [grant] = await client.subscribeAsync(filter, {
        qos: options.qos,
        ...(v5 ? { nl: options.noLocal, rap: options.retainAsPublished } : {}),
        ...(identifier === null ? {} : { properties: { subscriptionIdentifier: identifier } }),
      });
      granted = grant && grant.qos < 128 ? grant.qos : code(grant?.qos ?? 128);
    } catch (error) {
      granted = error instanceof Error ? error.message : String(error);
    }
    this.#change(filter, { granted });
  }

  async unsubscribe(filter: string): Promise<void> {
    const refused = this.subscriptions.some(
      (one) => one.filter === filter && typeof one.granted === 'string',
    );
    this.subscriptions = this.subscriptions.filter((one) => one.filter !== filter);
    if (!refused) await this.#client?.unsubscribeAsync(filter);
  }

  mute(filter: string, muted: boolean): void {
    this.#change(filter, { muted });
  }

  #change(filter: string, what: Partial<Subscription>): void {
    this.subscriptions = this.subscriptions.map((one) => (one.filter === filter ? { ...one, ...what } : one));
  }

  async publish(form: PublishForm): Promise<void> {
    const client = this.#client;
    const encoded = encode(form.payload, form.format);
    if (!client || 'wrong' in encoded || 'wrong' in encode(form.correlation, form.correlationForm)) return;
    const properties = this.used?.version === 5 ? publishProperties(form) : null;
    const row: Row = {
      ...this.#row('out', form.topic, encoded.bytes),
      qos: form.qos,
      retain: form.retain,
      properties: listed(properties ?? {}),
      responseTopic: form.responseTopic,
      outcome: 'sending',
    };
    this.#show([row]);
    let outcome: Row['outcome'] = 'sent';
    let detail = '';
    try {
      const packet = await client.publishAsync(form.topic, forLibrary(encoded.bytes), {
        qos: form.qos,
        retain: form.retain,
        ...(properties === null ? {} : { properties }),
      });
      const answer = packet !== undefined && 'reasonCode' in packet ? packet.reasonCode : 0;
      if (answer === 16) outcome = 'nobody';
    } catch (error) {
      outcome = 'refused';
      detail = error instanceof Error ? error.message : String(error);
    }
    this.rows = this.rows.map((one) => (one.key === row.key ? { ...one, outcome, detail } : one));
  }

  pause(paused: boolean): void {
    this.paused = paused;
    if (!paused) this.#flush();
  }

  clear(): void {
    this.rows = [];
    this.#held = [];
    this.waiting = 0;
    this.forgotten = 0;
  }

  #row(way: 'in' | 'out', topic: string, bytes: Uint8Array): Row {
    this.#next += 1;
    return {
      key: this.#next,
      way,
      atMs: Date.now(),
      topic,
      bytes: new Uint8Array(bytes.subarray(0, PAYLOAD_MOST)),
      whole: bytes.length,
      qos: 0,
      retain: false,
      dup: false,
      properties: [],
      responseTopic: '',
      correlation: '',
      outcome: null,
      detail: '',
    };
  }

  #take(topic: string, payload: Uint8Array, packet: IPublishPacket): void {
    this.received += 1;
    const { properties } = packet;
    const of = this.#count(topic, properties?.subscriptionIdentifier);
    if (of.length > 0 && of.every((one) => one.muted)) return;
    const { correlationData } = properties ?? {};
    this.#held.push({
      ...this.#row('in', topic, payload),
      qos: packet.qos,
      retain: packet.retain,
      dup: packet.dup,
      properties: listed(properties ?? {}),
      responseTopic: properties?.responseTopic ?? '',
      correlation: correlationData === undefined ? '' : hex(correlationData),
    });
    // A list that nobody can draw is cut before it is drawn.
    if (this.#held.length > KEPT) this.forgotten += this.#held.splice(0, this.#held.length - KEPT).length;
    if (this.paused) this.waiting = this.#held.length;
    else this.#frame ??= setTimeout(() => this.#flush(), 100);
  }

  /** Counts a message for its subscriptions: by their identifiers, else by their filters. */
  #count(topic: string, identifiers: number | number[] | undefined): Subscription[] {
    const wanted = identifiers === undefined ? [] : [identifiers].flat();
    const of = this.subscriptions.filter((one) =>
      one.identifier !== null && wanted.length > 0
        ? wanted.includes(one.identifier)
        : matches(one.filter, topic),
    );
    for (const one of of) one.received += 1;
    return of;
  }

  #flush(): void {
    if (this.#frame) clearTimeout(this.#frame);
    this.#frame = null;
    if (this.paused) return;
    this.#show(this.#held);
    this.#held = [];
    this.waiting = 0;
    // The counts of subscriptions are drawn with the messages.
    this.subscriptions = this.subscriptions.map((one) => ({ ...one }));
  }

  #show(rows: readonly Row[]): void {
    this.forgotten += Math.max(0, this.rows.length + rows.length - KEPT);
    this.rows = bounded(this.rows, rows, KEPT);
  }
}

const code = (reason: number | undefined) => `0x${(reason ?? 0).toString(16).padStart(2, '0')}`;

/** Properties for people: name and value, each user property of its own. */
function listed(properties: object): [string, string][] {
  const found: [string, string][] = [];
  for (const [name, value] of Object.entries(properties)) {
    const known: unknown = value;
    if (known === undefined || known === null) continue;
    if (name === 'userProperties' && typeof known === 'object')
      for (const [key, one] of Object.entries(known))
        for (const each of [one].flat()) found.push([key, String(each)]);
    else if (known instanceof Uint8Array) found.push([name, hex(known)]);
    else found.push([name, typeof known === 'string' ? known : JSON.stringify(known)]);
  }
  return found;
}

function correlationBytes(form: PublishForm): Uint8Array {
  const encoded = encode(form.correlation, form.correlationForm);
  return 'bytes' in encoded ? encoded.bytes : new Uint8Array();
}

function publishProperties(form: PublishForm): NonNullable<IPublishPacket['properties']> | null {
  const user = userProperties(form.user);
  const expiry = secondsOf(form.expiry);
  const properties: NonNullable<IPublishPacket['properties']> = {
    ...(form.format === 'hex' ? {} : { payloadFormatIndicator: true }),
    ...(form.contentType === '' ? {} : { contentType: form.contentType }),
    ...(form.responseTopic === '' ? {} : { responseTopic: form.responseTopic }),
    ...(form.correlation === '' ? {} : { correlationData: forLibrary(correlationBytes(form)) }),
    ...(expiry === null ? {} : { messageExpiryInterval: expiry }),
    ...(user === null ? {} : { userProperties: user }),
  };
  return Object.keys(properties).length === 0 ? null : properties;
}

function optionsOf(form: ConnectForm, password: string): IClientOptions {
  const v5 = form.version === 5;
  const expiry = secondsOf(form.expiry);
  const most = secondsOf(form.receiveMaximum);
  const user = userProperties(form.userProperties);
  const delay = secondsOf(form.will?.delay ?? '');
  return {
    clientId: form.clientId,
    protocolVersion: form.version,
    clean: form.clean,
    keepalive: secondsOf(form.keepAlive) ?? 60,
    reconnectPeriod: 2000,
    connectTimeout: 10_000,
    resubscribe: true,
    queueQoSZero: false,
    // Its other timers are in a worker of a blob: address, which the policy of the page forbids.
    timerVariant: 'native',
    ...(form.user === '' ? {} : { username: form.user }),
    ...(password === '' ? {} : { password }),
    ...(v5
      ? {
          properties: {
            ...(expiry === null ? {} : { sessionExpiryInterval: expiry }),
            ...(most === null || most === 0 ? {} : { receiveMaximum: Math.min(most, 65_535) }),
            ...(user === null ? {} : { userProperties: user }),
          },
        }
      : {}),
    ...(form.will === null || form.will.topic === ''
      ? {}
      : {
          will: {
            topic: form.will.topic,
            payload: forLibrary(new TextEncoder().encode(form.will.payload)),
            qos: form.will.qos,
            retain: form.will.retain,
            ...(v5 && delay !== null ? { properties: { willDelayInterval: delay } } : {}),
          },
        }),
  };
}

export const client = new TestClient();
