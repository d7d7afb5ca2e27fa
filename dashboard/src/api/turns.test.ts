import { describe, expect, test } from 'vitest';
import { STEADY_MOST, TURN_MS, type Tab, hasTurn, sharedBy, untilNextTurn } from './turns';

const tabs = (count: number): Tab[] =>
  Array.from({ length: count }, (_, index) => ({ id: `t${index}`, usedAtMs: 1000 - index }));
const withStream = (all: readonly Tab[], nowMs: number) =>
  all.filter((tab) => hasTurn(tab.id, all, nowMs)).map((tab) => tab.id);

describe('streams of the tabs of a browser', () => {
  test('are there all the time up to four tabs', () => {
    const all = tabs(STEADY_MOST + 1);
    for (let turn = 0; turn < 5; turn += 1)
      expect(withStream(all, turn * TURN_MS)).toEqual(['t0', 't1', 't2', 't3']);
    expect(sharedBy('t3', all)).toBe(1);
  });
  test('are never more than four, and each tab has its turn', () => {
    const all = tabs(10);
    const seen = new Map<string, number>();
    for (let turn = 0; turn < 7; turn += 1) {
      const now = withStream(all, turn * TURN_MS);
      expect(now).toHaveLength(STEADY_MOST + 1);
      for (const id of now) seen.set(id, (seen.get(id) ?? 0) + 1);
    }
    expect([...seen.values()]).toEqual([7, 7, 7, 1, 1, 1, 1, 1, 1, 1]);
    expect(sharedBy('t9', all)).toBe(7);
    expect(sharedBy('t0', all)).toBe(1);
  });
  test('go to the tab that was used last', () => {
    const all = tabs(10).map((tab) => (tab.id === 't9' ? { ...tab, usedAtMs: 5000 } : tab));
    expect(sharedBy('t9', all)).toBe(1);
    expect(sharedBy('t2', all)).toBe(7);
  });
  test('are told apart by their names when nobody used one', () => {
    const all = tabs(6).map((tab) => ({ ...tab, usedAtMs: 0 }));
    for (let turn = 0; turn < 6; turn += 1)
      expect(withStream(all, turn * TURN_MS)).toHaveLength(STEADY_MOST + 1);
  });
  test('do not wait for a list that lacks the tab itself', () =>
    expect(hasTurn('new', tabs(9), 0)).toBe(true));
  test('change at the same times in each tab', () => {
    expect(untilNextTurn(TURN_MS * 5)).toBe(TURN_MS);
    expect(untilNextTurn(TURN_MS * 5 + 200)).toBe(TURN_MS - 200);
  });
});
