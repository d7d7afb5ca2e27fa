import { describe, expect, test } from 'vitest';
import { capital, opened, sentence } from './sentence';

describe('texts of the broker', () => {
  test('begin with a capital letter', () => {
    expect(capital('the disk')).toBe('The disk');
    expect(capital("client's queue")).toBe("Client's queue");
    expect(capital('busy')).toBe('Busy');
  });
  test('keep a name at their begin', () => {
    expect(capital('limits.client.queue is 10')).toBe('limits.client.queue is 10');
    expect(capital('max_connections is 10')).toBe('max_connections is 10');
    expect(capital('p99 rises')).toBe('p99 rises');
  });
  test('keep the name of a user at their begin', () => {
    expect(opened('alice has changed')).toBe('alice has changed');
    expect(opened('the name is wrong')).toBe('The name is wrong');
    expect(opened('there is no client "a"')).toBe('There is no client "a"');
  });
  test('end once', () => {
    expect(sentence('it runs')).toBe('It runs.');
    expect(sentence('它在运行。')).toBe('它在运行。');
  });
});
