import { readFileSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SCENARIOS } from './scenariosZh';

test('every scenario of the program has a title and a text in Chinese', () => {
  const folder = new URL('../../../../crates/load/scenarios/', import.meta.url);
  const files = readdirSync(folder).filter((name) => name.endsWith('.toml'));
  const names = files.map((name) => {
    const text = readFileSync(new URL(name, folder), 'utf8');
    return /^alias = "(.+)"$/m.exec(text)?.[1] ?? /^name = "(.+)"$/m.exec(text)?.[1] ?? name;
  });
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => SCENARIOS[name] === undefined)).toEqual([]);
});
