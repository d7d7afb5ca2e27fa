import { describe, expect, test } from 'vitest';

interface Module {
  default: Readonly<Record<string, string>>;
}

const english = import.meta.glob<Module>(['./en.ts', '../ui/figures/en.ts', '../pages/**/en.ts'], {
  eager: true,
});
const chinese = import.meta.glob<Module>(['./zh.ts', '../ui/figures/zh.ts', '../pages/**/zh.ts'], {
  eager: true,
});
const places = (text: string) =>
  [...new Set([...text.matchAll(/\{(\w+)[|}]/g)].map((match) => match[1]))].sort();

describe.each(Object.keys(english))('%s', (file) => {
  const en = english[file]?.default ?? {};
  const zh = chinese[file.replace('en.ts', 'zh.ts')]?.default ?? {};

  test('has the same keys in Chinese', () => expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort()));

  test('takes no values in Chinese that it does not have in English', () => {
    for (const [key, text] of Object.entries(zh))
      for (const place of places(text))
        expect([key, places(en[key] ?? '')]).toEqual([key, expect.arrayContaining([place])]);
  });

  test('has as many strong words and pieces of code', () => {
    for (const [key, text] of Object.entries(en))
      expect([key, (zh[key]?.match(/\*\*|`/g) ?? []).length]).toEqual([
        key,
        (text.match(/\*\*|`/g) ?? []).length,
      ]);
  });
});
