import { describe, expect, test } from 'vitest';
import { flatLines, lineDifference, valueDifference } from './difference';

const marks = { same: ' ', add: '+', del: '-' } as const;
const shown = (lines: ReturnType<typeof lineDifference>) => lines.map((line) => marks[line.kind] + line.text);

describe('the difference of lines', () => {
  test('keeps what is in both, in its order', () =>
    expect(shown(lineDifference(['a', 'b', 'c'], ['a', 'x', 'c', 'd']))).toEqual([
      ' a',
      '-b',
      '+x',
      ' c',
      '+d',
    ]));
  test('a line that moves is taken away and added', () =>
    expect(shown(lineDifference(['a', 'b'], ['b', 'a']))).toEqual(['-a', ' b', '+a']));
  test('of nothing is everything', () => {
    expect(shown(lineDifference([], ['a']))).toEqual(['+a']);
    expect(shown(lineDifference(['a'], []))).toEqual(['-a']);
  });
});

describe('the difference of values', () => {
  test('names the path of each value', () =>
    expect(flatLines({ roles: ['a', 'b'], limits: { max: 3 }, rules: [], note: null })).toEqual([
      'roles[0] = "a"',
      'roles[1] = "b"',
      'limits.max = 3',
      'rules = []',
    ]));
  test('shows only what differs as added and removed', () =>
    expect(
      shown(valueDifference({ role: 'viewer', disabled: false }, { role: 'operator', disabled: false })),
    ).toEqual(['-role = "viewer"', '+role = "operator"', ' disabled = false']));
  test('of a plain value has a line', () => expect(shown(valueDifference(null, 7))).toEqual(['+value = 7']));
});
