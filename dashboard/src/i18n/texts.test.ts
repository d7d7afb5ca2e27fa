import { describe, expect, test } from 'vitest';
import { fill, pieces } from './texts';

describe('texts', () => {
  test('takes values', () => expect(fill('{a} of {b}', { a: 1, b: 'x' })).toBe('1 of x'));
  test('chooses the singular', () => {
    expect(fill('{n} {n|client|clients}', { n: 1 })).toBe('1 client');
    expect(fill('{n} {n|client|clients}', { n: '1' })).toBe('1 client');
    expect(fill('{n} {n|client|clients}', { n: 0 })).toBe('0 clients');
  });
  test('a place without a value stays visible', () => expect(fill('{a}')).toBe('{a}'));
  test('strong words and code are pieces', () =>
    expect(pieces('**Ready.** Use `thrum`.')).toEqual([
      { text: 'Ready.', look: 'strong' },
      { text: ' Use ', look: 'plain' },
      { text: 'thrum', look: 'code' },
      { text: '.', look: 'plain' },
    ]));
  test('a value is never markup', () =>
    expect(pieces('**{id}** is away', { id: 'a** `b` <b>{x}' })).toEqual([
      { text: 'a** `b` <b>{x}', look: 'strong' },
      { text: ' is away', look: 'plain' },
    ]));
});
