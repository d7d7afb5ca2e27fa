// A real broker for a test: its own data directory and ports that are free. The pages are those that the program
// contains, or with PAGES=built those of dist/site/, which a server in front of it serves.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const NAME = 'admin';
export const PASSWORD = 'correct-horse-battery';
const run = promisify(execFile);
const RULES = `[acl]
rules = ["deny all pub locked/#", "allow all pubsub #"]
default = "deny"
`;

function program(): string {
  const path = process.env['THRUM'];
  if (path === undefined) throw new Error('THRUM names no broker: THRUM=../target/release/thrum npm run e2e');
  return path;
}

/** Whether pages come from dist/site/ instead of the program. */
const FROM_FOLDER = process.env['PAGES'] === 'built';

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address: AddressInfo | string | null = server.address();
  await new Promise((done) => server.close(done));
  if (address === null || typeof address === 'string') throw new Error('no port is free');
  return address.port;
}

export class Broker {
  readonly mqttPort: number;
  readonly httpPort: number;
  readonly below: string;
  /** Where the pages are: the broker, or what is in front of it. */
  readonly pagePort: number;
  /** How often it was started: sessions of administrators end with it. */
  run = 0;
  readonly #folder: string;
  #broker: ChildProcess | null = null;
  #pages: ChildProcess | null = null;

  private constructor(folder: string, ports: [number, number, number], below: string) {
    this.#folder = folder;
    [this.mqttPort, this.httpPort, this.pagePort] = ports;
    this.below = below;
  }

  /** Starts a broker, with an administrator and rules in its file unless the options say otherwise. */
  static async start(
    options: { administrator?: boolean; below?: string; rules?: boolean; limits?: string } = {},
  ): Promise<Broker> {
    const folder = await mkdtemp(join(tmpdir(), 'thrum-e2e-'));
    const below = options.below ?? '';
    const [mqtt, http] = [await freePort(), await freePort()];
    const page = FROM_FOLDER || below !== '' ? await freePort() : http;
    const broker = new Broker(folder, [mqtt, http, page], below);
    await writeFile(
      join(folder, 'thrum.toml'),
      `[node]
data_dir = "${folder}/data"
stamp_messages = 1
[listeners]
mqtt = { bind = "127.0.0.1:${broker.mqttPort}" }
http = { bind = "127.0.0.1:${broker.httpPort}" }
[auth]
anonymous = true
[limits]
${options.limits ?? ''}
client = { queue = 20 }
${options.rules === false ? '' : RULES}`,
    );
    await writeFile(join(folder, 'password'), PASSWORD);
    await broker.up(options.administrator ?? true);
    if (broker.pagePort !== broker.httpPort) await broker.#serve();
    return broker;
  }

  /** Starts what stands in front of the broker: a proxy below a path, or a server of the built pages. */
  async #serve(): Promise<void> {
    const server = fileURLToPath(new URL('./server.mjs', import.meta.url));
    this.#pages = spawn(
      process.execPath,
      [server, String(this.httpPort), String(this.pagePort), this.below, FROM_FOLDER ? 'built' : ''],
      { stdio: 'ignore' },
    );
    await this.#answers(this.pagePort, `${this.below}/livez`);
  }

  async up(administrator = true): Promise<void> {
    this.run += 1;
    this.#broker = spawn(program(), ['serve', '-c', join(this.#folder, 'thrum.toml')], {
      stdio: 'ignore',
      env: {
        ...process.env,
        ...(administrator ? { THRUM_ADMIN_PASSWORD_FILE: join(this.#folder, 'password') } : {}),
      },
    });
    await this.#answers(this.httpPort, '/readyz');
    if (FROM_FOLDER) return;
    const page = await (await fetch(`http://127.0.0.1:${this.httpPort}/`)).text();
    if (!page.includes('assets/index-'))
      throw new Error(`${program()} contains no dashboard: run \`make dashboard\` and build it again`);
  }

  async down(): Promise<void> {
    const broker = this.#broker;
    this.#broker = null;
    if (!broker) return;
    const ended = new Promise((done) => broker.once('exit', done));
    broker.kill('SIGTERM');
    const late = setTimeout(() => broker.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(late);
  }

  async stop(): Promise<void> {
    await this.down();
    this.#pages?.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Its folder, for files of a test. */
  get folder(): string {
    return this.#folder;
  }

  /** The address of the dashboard. */
  get url(): string {
    return `http://127.0.0.1:${this.pagePort}${this.below}/`;
  }

  async setupLink(): Promise<string> {
    const { stdout } = await run(program(), ['admin', 'setup-url', '--data-dir', join(this.#folder, 'data')]);
    const token = /[?&]t=([\w-]+)/.exec(stdout)?.[1];
    if (token === undefined) throw new Error(`no link in: ${stdout}`);
    return `${this.url}setup?t=${token}`;
  }

  /** Begins a scenario of `thrum bench` against it. */
  load(scenario: string, ...options: string[]): ChildProcess {
    const target = `mqtt://127.0.0.1:${this.mqttPort}`;
    return spawn(
      program(),
      ['bench', scenario, '--target', target, '--no-tui', '--out', join(this.#folder, 'runs'), ...options],
      { stdio: 'ignore' },
    );
  }

  /** Adds an administrator with the password of the tests. */
  async administrator(name: string, role: 'viewer' | 'operator'): Promise<void> {
    const folder = join(this.#folder, 'data');
    const file = join(this.#folder, 'password');
    await run(program(), [
      ...['admin', 'add', name, '--role', role],
      ...['--password-file', file, '--data-dir', folder],
    ]);
  }

  /** Asks it as another administrator does, with a command of thrum. */
  async command(...words: string[]): Promise<string> {
    const folder = join(this.#folder, 'data');
    return (await run(program(), [...words, '--data-dir', folder])).stdout;
  }

  async publish(topic: string, message: string, ...options: string[]): Promise<void> {
    await run(program(), [
      'pub',
      '-h',
      '127.0.0.1',
      '-p',
      String(this.mqttPort),
      '-t',
      topic,
      '-m',
      message,
      ...options,
    ]);
  }

  async #answers(port: number, path: string): Promise<void> {
    for (let attempt = 0; attempt < 600; attempt += 1) {
      const found = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
      if (found?.ok) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`nothing answers at port ${port}`);
  }
}

/** A client of MQTT 5.0 as small as a test needs it. */
export class Client {
  readonly #socket: Socket;
  #next = 1;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async connect(port: number, id: string, window = 0): Promise<Client> {
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((done) => socket.once('connect', () => done()));
    const properties = window > 0 ? [0x11, 0, 0, 14, 16, 0x21, window >> 8, window & 255] : [];
    const body = [
      ...text('MQTT'),
      5,
      window > 0 ? 0 : 2,
      0,
      0,
      properties.length,
      ...properties,
      ...text(id),
    ];
    const answered = new Promise<void>((done) => socket.once('data', () => done()));
    socket.write(Buffer.from([0x10, ...length(body.length), ...body]));
    await answered;
    socket.on('error', () => undefined);
    return new Client(socket);
  }

  async subscribe(filter: string, qos: number): Promise<void> {
    const body = [0, this.#id(), 0, ...text(filter), qos];
    const answered = new Promise<void>((done) => this.#socket.once('data', () => done()));
    this.#socket.write(Buffer.from([0x82, ...length(body.length), ...body]));
    await answered;
  }

  publish(topic: string, payload: string | Buffer, options: { qos?: number; retain?: boolean } = {}): void {
    const qos = options.qos ?? 0;
    const body = [...text(topic), ...(qos > 0 ? [0, this.#id()] : []), 0, ...Buffer.from(payload)];
    this.#socket.write(
      Buffer.from([0x30 | (qos << 1) | (options.retain ? 1 : 0), ...length(body.length), ...body]),
    );
  }

  close(): void {
    this.#socket.destroy();
  }

  #id(): number {
    this.#next = (this.#next % 250) + 1;
    return this.#next;
  }
}

function text(value: string): number[] {
  const bytes = Buffer.from(value);
  return [bytes.length >> 8, bytes.length & 255, ...bytes];
}

function length(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, value >> 7];
}
