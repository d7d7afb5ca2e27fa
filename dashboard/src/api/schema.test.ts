import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { schemaTypes } from '../../scripts/generate.mjs';

test('the types of the interface are those of docs/api/openapi.json', async () => {
  const committed = await readFile(new URL('./schema.d.ts', import.meta.url), 'utf8');
  // After a change of the description: npm run generate
  expect(await schemaTypes()).toBe(committed);
}, 30_000);
