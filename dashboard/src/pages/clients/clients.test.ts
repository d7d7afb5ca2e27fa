import { describe, expect, test } from 'vitest';
import { USUAL, columnsOf } from './columns';
import { hasTerm, idOf, isUnfinished, term, termsOf, toggled } from './filter';
import { sayOf } from './say';

describe('filters', () => {
  test('a value in quotes is one term', () =>
    expect(termsOf('user="a b" queue>100 meter')).toEqual(['user="a b"', 'queue>100', 'meter']));
  test('a value with spaces, quotes or stars is quoted', () => {
    expect(term('user', 'al')).toBe('user=al');
    expect(term('user', 'a "b"')).toBe('user="a \\"b\\""');
    expect(term('user', 'a*')).toBe('user="a*"');
  });
  test('a choice is added, changed and taken back', () => {
    expect(toggled('queue>1', 'problem', 'slow')).toBe('queue>1 problem=slow');
    expect(toggled('problem=slow queue>1', 'problem', 'queue')).toBe('queue>1 problem=queue');
    expect(toggled('queue>1 problem=slow', 'problem', 'slow')).toBe('queue>1');
  });
  test('names one client if it asks for nothing else', () => {
    expect(['device-17', 'client=device-17', '"a b"', 'client="a \\"b\\""'].map(idOf)).toEqual([
      'device-17',
      'device-17',
      'a b',
      'a "b"',
    ]);
    expect(['', 'user=al', 'queue>1', 'dev*', 'device-17 queue>1'].map(idOf)).toEqual(Array(5).fill(null));
  });
  test('is not asked in the middle of a term', () => {
    expect(['queue>', 'user=', 'a user="x y'].map(isUnfinished)).toEqual([true, true, true]);
    expect(['', 'dev', 'queue>1', 'user="x y"'].map(isUnfinished)).toEqual([false, false, false, false]);
  });
  test('knows its terms', () => {
    expect(hasTerm('state=connected', 'state', 'connected')).toBe(true);
    expect(hasTerm('state=connected', 'state', 'persistent')).toBe(false);
  });
});

describe('the sentence about problems', () => {
  test('does not count clients that are away among those that are connected', () => {
    expect(sayOf(2, 2)).toBe('say.problems');
    expect(sayOf(1, 0)).toBe('say.problems.away');
    expect(sayOf(3, 2)).toBe('say.problems.both');
  });
});

describe('columns', () => {
  test('are the usual ones without a choice', () => expect(columnsOf('')).toEqual(USUAL));
  test('keep their order and leave out unknown names', () =>
    expect(columnsOf('queue,user,colour')).toEqual(['user', 'queue']));
});
