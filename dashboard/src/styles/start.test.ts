import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8');

test('what is painted first has the colours of the pages', async () => {
  const [start, tokens] = await Promise.all([read('../../public/start.css'), read('./tokens.css')]);
  for (const name of ['--bg', '--line-2']) {
    const colour = new RegExp(`${name}:\\s*(light-dark\\([^)]*\\))`).exec(tokens)?.[1];
    expect([name, colour !== undefined && start.includes(colour)]).toEqual([name, true]);
  }
});
