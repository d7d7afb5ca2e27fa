import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { GROUPS, OPERATIONS } from './operationsZh';
import { groupsOf } from './operations';

const path = new URL('../../../../../docs/api/openapi.json', import.meta.url);
const groups = groupsOf(JSON.parse(readFileSync(path, 'utf8')));

describe('the interface in Chinese', () => {
  test('every operation of the document has a text, and no other', () => {
    const ids = groups.flatMap((group) => group.operations.map((one) => one.id));
    expect(Object.keys(OPERATIONS).sort()).toEqual(ids.sort());
  });
  test('every group of the document has a text', () => {
    expect(groups.map((group) => group.name).filter((name) => GROUPS[name] === undefined)).toEqual([]);
  });
});
