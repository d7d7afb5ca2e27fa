import { describe, expect, test } from 'vitest';
import { EventParser } from './sse';

describe('server-sent events', () => {
  const stream =
    ': hello\nretry: 2000\n\nid: 5\nevent: figures\ndata: {"a":1}\n\nevent: end\ndata: x\ndata: y\n\n';
  const events = [
    { id: '5', event: 'figures', data: '{"a":1}' },
    { id: '5', event: 'end', data: 'x\ny' },
  ];
  test('are read as a whole', () => expect(new EventParser().push(stream)).toEqual(events));
  test('are read letter by letter', () => {
    const parser = new EventParser();
    expect(Array.from(stream).flatMap((letter) => parser.push(letter))).toEqual(events);
  });
  test('may end with carriage returns', () =>
    expect(new EventParser().push('data: a\r\n\r\n')).toEqual([{ id: null, event: 'message', data: 'a' }]));
  test('tell when to try again', () => {
    const parser = new EventParser();
    parser.push(stream);
    expect(parser.retryMs).toBe(2000);
  });
  test('an event without data is none', () => expect(new EventParser().push('event: a\n\n')).toEqual([]));
});
