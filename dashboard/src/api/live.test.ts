import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Live } from './live.svelte';
import { TURN_MS } from './turns';

/** A stream that the page has asked for. */
class Asked {
  readonly answer: Response;
  #to: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor(
    readonly url: string,
    readonly signal: AbortSignal,
  ) {
    this.answer = new Response(new ReadableStream({ start: (to) => void (this.#to = to) }));
  }

  get open(): boolean {
    return !this.signal.aborted;
  }

  figures(): void {
    this.#to?.enqueue(new TextEncoder().encode('event: figures\nid: 1\ndata: {"at_ms":1}\n\n'));
  }
}

/** What the browser knows of the other tabs. */
class Channel {
  static latest: Channel | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  constructor() {
    Channel.latest = this;
  }
  postMessage(): void {
    // Nobody listens: the test tells what the other tabs say.
  }
  close(): void {
    Channel.latest = null;
  }
}

const page = Object.assign(new EventTarget(), { hidden: false });
let asked: Asked[] = [];
/** Whether the broker sends figures, once a second. */
let broker: 'sends' | 'silent' = 'sends';
let others = 0;
let ends: (() => void)[] = [];

/** Lets time pass, in which the other tabs tell that they are there and the broker sends. */
async function pass(ms: number): Promise<void> {
  for (let gone = 0; gone < ms; gone += 100) {
    for (let tab = 0; tab < others; tab += 1)
      Channel.latest?.onmessage?.({ data: { kind: 'here', id: `other-${tab}`, usedAtMs: 1e13 + tab } });
    if (broker === 'sends' && gone % 1000 === 0) for (const one of asked) if (one.open) one.figures();
    await vi.advanceTimersByTimeAsync(100);
  }
}

function show(hidden: boolean): void {
  page.hidden = hidden;
  page.dispatchEvent(new Event('visibilitychange'));
}

const open = () => asked.filter((one) => one.open).length;

beforeEach(() => {
  vi.useFakeTimers({ now: 1000 * TURN_MS });
  vi.stubGlobal('document', page);
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('location', { pathname: '/' });
  vi.stubGlobal('BroadcastChannel', Channel);
  vi.stubGlobal('PerformanceNavigationTiming', Channel);
  vi.stubGlobal('requestAnimationFrame', (draw: () => void) => setTimeout(draw, 16));
  vi.stubGlobal('cancelAnimationFrame', (frame: number) => clearTimeout(frame));
  vi.stubGlobal('fetch', (url: string, { signal }: { signal: AbortSignal }) => {
    const one = new Asked(url, signal);
    asked.push(one);
    return Promise.resolve(one.answer);
  });
  asked = [];
  broker = 'sends';
  others = 0;
  page.hidden = false;
});
afterEach(() => {
  for (const end of ends) end();
  ends = [];
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A page that shows figures. */
function started(): Live {
  const live = new Live();
  ends.push(live.start());
  live.show('figures', { figures: 'all' }, () => undefined);
  return live;
}

describe('a tab that shares its stream with another one', () => {
  const ROUND_MS = 2 * TURN_MS;
  beforeEach(() => (others = 4));

  test('has it in its turns only', async () => {
    const live = started();
    await pass(ROUND_MS);
    expect(live.state).toEqual({ kind: 'shared', everyMs: ROUND_MS });
    const before = asked.length;
    await pass(4 * ROUND_MS);
    expect(asked.length).toBe(before + 4);
  });

  test('says how often its turn is when more tabs come', async () => {
    const live = started();
    await pass(ROUND_MS);
    others = 6;
    await pass(5 * TURN_MS);
    expect(live.state).toEqual({ kind: 'shared', everyMs: 4 * TURN_MS });
  });

  test.each([
    ['its own turn', TURN_MS],
    ['the turn of the other', 0],
  ])('follows on after it was hidden, shown in %s', async (_, later) => {
    const live = started();
    await pass(2 * ROUND_MS);
    show(true);
    await pass(10 * ROUND_MS);
    expect(open()).toBe(0);
    await pass(later);
    show(false);
    const before = asked.length;
    await pass(4 * ROUND_MS);
    expect(asked.length).toBeGreaterThanOrEqual(before + 4);
    expect(asked.length).toBeLessThanOrEqual(before + 5);
    expect(live.state.kind).toBe('shared');
    expect(Date.now() - (live.lastMs ?? 0)).toBeLessThanOrEqual(ROUND_MS);
  });

  test('says so when nothing comes in its turns, and tries again', async () => {
    const live = started();
    await pass(2 * ROUND_MS);
    broker = 'silent';
    await pass(ROUND_MS + 3000);
    expect(live.state.kind).toBe('shared');
    await pass(4000);
    // It stays so over the next turns, in which nothing comes either.
    for (let turn = 0; turn < 4; turn += 1) {
      expect(live.state.kind).toBe('stale');
      await pass(TURN_MS);
    }
    await pass(10_000);
    expect(live.state.kind).toBe('cut');
    broker = 'sends';
    await pass(20_000);
    expect(live.state.kind).toBe('shared');
  });
});

describe('a stream that is refused', () => {
  const body = JSON.stringify({ title: 't', status: 1, detail: 'd', remedy: 'r' });
  test.each([
    [429, body, false],
    [503, body, false],
    [403, body, false],
    [404, '', false],
    [502, 'Bad Gateway', true],
    [503, '', true],
  ])('with %i and %j: the broker is lost is %j', async (status, text, isLost) => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(text, { status })));
    const live = started();
    await pass(500);
    expect(live.state.kind).toBe('cut');
    expect(live.isLost).toBe(isLost);
  });
  test('by nobody: the broker is lost', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('no connection')));
    const live = started();
    await pass(500);
    expect(live.isLost).toBe(true);
  });
});

describe('a tab with a stream of its own', () => {
  test('gives up a silent stream, and each silent one after it', async () => {
    const live = started();
    await pass(3000);
    expect(live.state.kind).toBe('live');
    broker = 'silent';
    await pass(6000);
    expect(live.state.kind).toBe('stale');
    await pass(12_000);
    expect(live.state.kind).toBe('cut');
    const before = asked.length;
    await pass(60_000);
    expect(asked.length).toBeGreaterThan(before + 1);
    expect(open()).toBeLessThanOrEqual(1);
  });

  test('is not cut off because nothing came while it was hidden', async () => {
    const live = started();
    await pass(3000);
    show(true);
    await pass(60_000);
    expect(live.state.kind).toBe('live');
    show(false);
    await pass(2000);
    expect(live.state.kind).toBe('live');
  });

  test('has no stream on a page that shows nothing live', async () => {
    const live = new Live();
    ends.push(live.start());
    const end = live.show('figures', { figures: 'all' }, () => undefined);
    await pass(3000);
    end();
    await pass(60_000);
    expect(open()).toBe(0);
    expect(live.state.kind).toBe('off');
  });
});
