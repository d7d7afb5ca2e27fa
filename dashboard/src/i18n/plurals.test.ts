// English texts say "1 line" and "2 lines": each is read with 1 in all its places.
import { expect, test } from 'vitest';
import { fill } from './texts';

const modules = import.meta.glob<{ default: Readonly<Record<string, string>> }>(
  ['./en.ts', '../ui/figures/en.ts', '../pages/**/en.ts'],
  { eager: true },
);

/** Words of the singular that end like a plural, behind a number or a name in its place. */
const SINGULAR =
  /^(?:is|was|has|does|its|this|us|ms|as|[a-z]+(?:ss|ves not)|address|accepts|allows|cannot|carries|cares|delivers|differs|expires|gets|goes|hits|keeps|kills|leads|likes|limits|logs|loses|makes|matches|means|misses|needs|opens|passes|places|publishes|receives|returns|runs|says|sees|sends|shares|shows|signs|stays|subscribes|takes|waits|works|writes)$/;

/** What is wrong behind a 1: a noun in the plural, perhaps behind an adjective, or a verb of many. */
function wrongIn(text: string): string[] {
  const places = [...text.matchAll(/\{(\w+)/g)].map((found) => [found[1] ?? '', 1] as const);
  const said = fill(text, Object.fromEntries(places)).replaceAll('**', '');
  const found = [...said.matchAll(/(?<![\d.,–≥≤]|of |least )\b1 ((?:[a-z]+ )?([a-z]+))/g)];
  return found.flatMap(([all, , last = '']) => {
    const first = all.split(' ')[1] ?? '';
    const words = first === last ? [first] : [first, last];
    if (/^(?:are|were|have|do|wait|match|need|lose)$/.test(first)) return [all];
    if (/[^s]s$/.test(first)) return SINGULAR.test(first) ? [] : [all];
    const second = words[1] ?? '';
    const isAdjective =
      /^(?:more|other|older|earlier|further|recovery|retained|changed|connected|simulated)$/;
    return isAdjective.test(first) && /[^s]s$/.test(second) && !SINGULAR.test(second) ? [all] : [];
  });
}

test('a text with a plural behind a 1 is found', () => {
  expect(wrongIn('In the {n} lines since {since}')).toEqual(['1 lines since']);
  expect(wrongIn('{n} more rows')).toEqual(['1 more rows']);
  expect(wrongIn('{n} are kept')).toEqual(['1 are kept']);
  expect(wrongIn('{n} {n|row is|rows are} saved; {name} needs it')).toEqual([]);
});

test.each(Object.entries(modules))('%s has no plural behind a 1', (_, { default: texts }) => {
  const wrong = Object.entries(texts).map(([key, text]) => [key, wrongIn(text)] as const);
  expect(wrong.filter(([, found]) => found.length > 0)).toEqual([]);
});
