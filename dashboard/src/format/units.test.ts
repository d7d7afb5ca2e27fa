// Units are written in this folder only: a page that makes its own says the same in another way.
import { expect, test } from 'vitest';

const sources = import.meta.glob<string>(
  ['../pages/**/*.{ts,svelte}', '../ui/**/*.{ts,svelte}', '../*.svelte'],
  {
    eager: true,
    query: '?raw',
    import: 'default',
  },
);

const OWN = /\.toFixed\(|toLocaleString\(|\b(?:traffic|memory)\([^)]*\)+\}?(?:\.unit\}?)?\/s|\{bytes\}\/s/;

test.each(Object.entries(sources).filter(([file]) => !file.includes('.test.')))(
  '%s makes no unit of its own',
  (_, source) => expect(OWN.exec(source)?.[0]).toBeUndefined(),
);

test('a unit that is made by hand is found', () => {
  expect(OWN.test('note="{joined(traffic(figures.now(name)))}/s"')).toBe(true);
  expect(OWN.test('`${traffic(root?.bytes_per_second).unit}/s`')).toBe(true);
  expect(OWN.test("'{bytes}/s · fan-out'")).toBe(true);
  expect(OWN.test('(bytes / 1e6).toFixed(1)')).toBe(true);
});
