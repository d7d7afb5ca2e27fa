// What the broker says of a key, in Chinese. A key that the catalogue does not have is told as the broker wrote it.
import type { Key } from './keys';
import { KEYS } from './keysZh';
import { tomlValue } from './toml';
import type { Words } from './words.svelte';

const EXPECTED: readonly (readonly [RegExp, string])[] = [
  [/^a duration such as (.*) or a number of seconds$/, '时长，例如 $1，或秒数'],
  [/^a list of texts in quotes: (.*)$/, '带引号的文本的列表：$1'],
  [/^a size such as (.*) or a number of bytes$/, '大小，例如 $1，或字节数'],
  [/^a rate of bytes such as (.*), or 0 for no limit$/, '字节速率，例如 $1，或 0 表示不限制'],
  [/^a rate such as (.*), or 0 for no limit$/, '速率，例如 $1，或 0 表示不限制'],
  [
    /^a pattern such as "%u-\*": %u is the user name, \* any characters, %% a percent sign$/,
    '格式，例如 "%u-*"：%u 是用户名，* 是任意字符，%% 是百分号',
  ],
  [
    /^a list of up to (\d+) texts "filter=priority", with a topic filter and a number from 0 to 255$/,
    '最多 $1 项 "过滤器=优先级" 的列表，优先级为 0 到 255',
  ],
  [
    /^"address:port", a port, "unix:\/path", or a list of them$/,
    '"地址:端口"、端口、"unix:/path"，或它们的列表',
  ],
  [/^"auto" or a number from (\d+) to (\d+)$/, '"auto" 或 $1 到 $2 的整数'],
  [/^("[\w", ]+), true or false$/, '$1、true 或 false'],
  [/^a whole number from (\d+) to (\d+)$/, '$1 到 $2 的整数'],
  [/^one of (.*)$/, '以下之一：$1'],
  [/^true or false$/, 'true 或 false'],
  [/^an array, each value a text in quotes$/, '带引号的文本的列表'],
  [/^a text in quotes$/, '带引号的文本'],
];

function expectedOf(english: string): string {
  const known = EXPECTED.find(([form]) => form.test(english));
  return known ? english.replace(known[0], known[1]) : english;
}

const PATTERNS = Object.entries(KEYS).map(([name, text]) => ({ parts: name.split('.'), text }));

/** The text of a key, whose table may have a name of one's choice; null if there is none. */
export function textOf(key: string): string | null {
  const known = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (known !== undefined) return known;
  const parts = key.split('.');
  const found = PATTERNS.find(
    (one) =>
      one.parts.length === parts.length && one.parts.every((part, at) => part === '*' || part === parts[at]),
  );
  return found?.text ?? null;
}

/** What a key is for; null for one that is not known. */
export function purposeOf(key: string): string | null {
  return textOf(key)?.split('｜')[0] ?? null;
}

/** What the broker says of a key; null for one that is not known. */
export function wordsOf(key: Pick<Key, 'key' | 'default' | 'expected'>): Words | null {
  const text = textOf(key.key);
  if (text === null) return null;
  const [purpose = '', reason] = text.split('｜');
  const why = reason === undefined ? '' : `\`${tomlValue(key.default)}\`：${reason}`;
  return { purpose, why, expected: expectedOf(key.expected) };
}
