import { describe, expect, test } from 'vitest';
import { change, numberAt, numberPaths } from './jsonPath';

const payload = '{"t":21.7,"u":"C","motor":[{"rpm":1200}],"a b":{"x":1}}';

describe('paths of numbers', () => {
  test('finds every number with its path', () =>
    expect(numberPaths(payload)).toEqual(['$.t', '$.motor[0].rpm', '$["a b"].x']));
  test('a number alone has the path $', () => expect(numberPaths('21.7')).toEqual(['$']));
  test('text that is no JSON has none', () => expect(numberPaths('21,7 C')).toEqual([]));
  test.each(['$.t', '$.motor[0].rpm', '$["a b"].x'])('reads %s again', (path) =>
    expect(numberAt(payload, path)).not.toBeNull(),
  );
  test('a path that is missing is null', () => expect(numberAt(payload, '$.motor[1].rpm')).toBeNull());
  test('what objects inherit is no value', () => expect(numberAt('{}', '$.constructor.length')).toBeNull());
  test('a change has its sign and no rounding error', () => {
    expect(change(21.6, 21.7)).toBe('+0.1');
    expect(change(21.7, 21.6)).toBe('−0.1');
    expect(change(1, 1)).toBe('0');
    expect(change(null, 1)).toBe('');
  });
});
