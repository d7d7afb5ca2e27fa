import { expect, test } from 'vitest';
import { asOf, shownMs } from './asOf';

test('what was said of a broker that is gone has no state, and begins with its moment', () =>
  expect(
    asOf(
      {
        is: 'ok',
        say: [
          { text: 'All is well:', look: 'strong' },
          { text: ' 3 clients, see ', look: 'plain' },
          { text: 'x', look: 'code' },
        ],
      },
      'At 14:12:23:',
    ),
  ).toEqual({
    is: 'off',
    say: [
      { text: 'At 14:12:23: ', look: 'strong' },
      { text: 'All is well:', look: 'plain' },
      { text: ' 3 clients, see ', look: 'plain' },
      { text: 'x', look: 'code' },
    ],
  }));

test('time stands still while nothing comes', () => {
  expect(shownMs(true, 5, 9)).toBe(5);
  expect(shownMs(false, 5, 9)).toBe(9);
  expect(shownMs(true, null, 9)).toBe(9);
});
