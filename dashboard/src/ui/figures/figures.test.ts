import { readFile, readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { addressFor, commandFor, promqlFor } from './elsewhere';
import english from './en';
import { FIGURES, sourceOf } from './table';

const DOCS = new URL('../../../../docs/', import.meta.url);
const read = (path: string) => readFile(new URL(path, DOCS), 'utf8');
const known = (name: string): name is keyof typeof FIGURES => Object.hasOwn(FIGURES, name);
const figures = Object.keys(FIGURES)
  .filter(known)
  .map((name) => ({ name, ...sourceOf(name) }));

interface Description {
  paths: Readonly<Record<string, { get?: { parameters?: { name: string; in: string }[] } }>>;
}

async function description(): Promise<Description> {
  // eslint-disable-next-line @typescript-eslint/no-unsafe-return
  return JSON.parse(await read('api/openapi.json'));
}

async function guides(): Promise<string> {
  const files = (await readdir(new URL('guide/', DOCS))).filter((file) => file.endsWith('.md'));
  return (await Promise.all(files.map((file) => read(`guide/${file}`)))).join('\n');
}

describe('the table of figures', () => {
  test('explains each of them, and no other', () =>
    expect(Object.keys(english).sort()).toEqual(figures.map(({ name }) => name).sort()));

  test('asks Prometheus for metrics that the broker has', async () => {
    const guide = await read('guide/metrics.md');
    const asked = figures.flatMap(({ promql }) => promql?.match(/\b(?:thrum|process)_\w+/g) ?? []);
    expect(asked.length).toBeGreaterThan(20);
    const has = (metric: string) =>
      guide.includes(`| \`${metric}\` |`) ||
      guide.includes(`| \`${metric.replace(/_(bucket|sum|count)$/, '')}\` | histogram |`);
    expect(asked.filter((metric) => !has(metric))).toEqual([]);
  });

  test('names routes and parameters that the interface has', async () => {
    const { paths } = await description();
    for (const { name, path, query } of figures) {
      const parameters = paths[path]?.get?.parameters?.filter((one) => one.in === 'query');
      const missing = Object.keys(query ?? {}).filter((key) => !parameters?.some((one) => one.name === key));
      expect([name, paths[path]?.get === undefined, missing]).toEqual([name, false, []]);
    }
  });

  test('names figures of the history that the guide has', async () => {
    const guide = await read('guide/live.md');
    // Times are listed there by their ends: `deliveries_to_100us`, `_200us`.
    const listed = (figure: string) =>
      guide.includes(`\`${figure}\``) || guide.includes(`\`${figure.replace('deliveries_to', '')}\``);
    for (const { path, query } of figures)
      if (path === '/history')
        for (const figure of (query?.['figure'] ?? '').split(','))
          expect([figure, listed(figure)]).toEqual([figure, true]);
  });

  test('names commands that the guides have', async () => {
    const text = await guides();
    for (const { command } of figures) {
      const words = command.split(' ').filter((word) => !/^(--.*|.*[{/=].*)$/.test(word));
      const named = `thrum ${words.slice(0, 2).join(' ')}`;
      expect([named, text.includes(named)]).toEqual([named, true]);
    }
  });

  test('puts an identifier in as one word, whatever letters it has', () => {
    const { client_queue, topic_rate, client_dropped, sink_waiting } = FIGURES;
    expect(promqlFor(sink_waiting, 'a"b')).toBe('thrum_sink_messages_waiting{sink="a\\"b"}');
    expect(addressFor(client_queue, 'a/b $&')).toBe('api/v1/clients/a%2Fb%20%24%26/queue');
    expect(addressFor(topic_rate, 'a/$&')).toBe('api/v1/topics/topic?topic=a%2F%24%26');
    expect(commandFor(client_dropped, "it's")).toBe("thrum drops ls --client 'it'\\''s'");
  });
});
