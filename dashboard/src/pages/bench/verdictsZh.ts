// What the program says about a run, in Chinese. Its sentences have no code, so they are recognised by their form; one
// that is not known stays as the program wrote it.

import chinese from './zh';

const DOES: Readonly<Record<string, string>> = {
  'sent messages': '发送消息',
  'read its sockets': '读取套接字',
  'opened connections': '建立连接',
};

function causeOf(text: string): string {
  const thread =
    /^its thread (bench-\d+) (sent messages|read its sockets|opened connections) up to (\S+) late$/.exec(
      text,
    );
  if (thread) return `其线程 ${thread[1] ?? ''} ${DOES[thread[2] ?? ''] ?? ''}最多迟了 ${thread[3] ?? ''}`;
  if (text === 'the clocks of the machines differ by an unknown part of it')
    return '各机器的时钟相差未知的部分';
  if (text === 'it takes that long to write and to read') return '写入和读取就需要这么久';
  return text;
}

const WORDS: Readonly<Record<string, string>> = chinese;

/** A figure as a comparison calls it: `lost`, `p99` of the latency, `publish ack p99`, `CPU per message`. */
function figureOf(text: string): string {
  if (text === 'CPU per message') return '每条消息的 CPU';
  const [, distribution = '', statistic] = /^(?:(\w[\w ]*) )?(p[\d.]+|mean)$/.exec(text) ?? [];
  if (statistic === undefined) return WORDS[`d.${text}`] ?? text;
  const name = WORDS[`d.${distribution === '' ? 'e2e' : distribution.replaceAll(' ', '_')}`];
  return `${name ?? distribution} ${statistic}`;
}

const FORMS: readonly (readonly [RegExp, (...parts: string[]) => string])[] = [
  [/^withheld: (.+)$/, (why = '') => `不显示：${verdictOf(why) ?? why}`],
  [/^withheld$/, () => '不显示'],
  [
    /^(\S+ [<>=!]+ \S+) is missed: (.+)$/,
    (limit, value = '') => `没有达到 ${limit}：${verdictOf(value) ?? value}`,
  ],
  [
    /^(all|up to \S+) of (\S+) (\S+) may be the generator's: (.+)$/,
    (part = '', name, seen, cause = '') =>
      `${name} ${seen} 中${part === 'all' ? '的全部' : `最多 ${part.slice(6)} `}可能来自负载发生器：${causeOf(cause)}`,
  ],
  [/^how much of (\S+) may be the generator's is not known$/, (name) => `${name} 中有多少来自负载发生器未知`],
  [
    /^a generator thread was busy (.+) of the time$/,
    (share) => `负载发生器的一个线程有 ${share} 的时间在工作`,
  ],
  [/^(.+) of (.+) messages were not sent$/, (missing, all) => `${all} 条消息中有 ${missing} 条没有发送`],
  [/^the host of this machine kept (.+) of its CPU$/, (share) => `宿主机占用了这台机器 ${share} 的 CPU`],
  [
    /^the coordinator was up to (\S+) late: CPU and memory of the broker belong to another time$/,
    (late) => `协调线程最多迟了 ${late}：服务器的 CPU 和内存属于另一时刻`,
  ],
  [/^the coordinator was up to (\S+) late$/, (late) => `协调线程最多迟了 ${late}`],
  [/^the accounts of the hold were read (\S+) late$/, (late) => `保持阶段的数值迟了 ${late} 才读取`],
  [/^(.+) values are too few: it takes (.+)$/, (has, needs) => `${has} 个值太少：需要 ${needs} 个`],
  [
    /^up to (\S+) of (\S+) may be the generator's$/,
    (part, all) => `${all} 中最多 ${part} 可能来自负载发生器`,
  ],
  [
    /^more than (\S+): (.+) of (.+) never arrived$/,
    (time, missing, all) => `超过 ${time}：${all} 条中有 ${missing} 条没有到达`,
  ],
  [
    /^No conclusion: the figures of an INVALID run are the generator's$/,
    () => '没有结论：无效测试的数值反映的是负载发生器',
  ],
  [/^No conclusion: the runs have no figure in common$/, () => '没有结论：这些测试没有共同的数值'],
  [
    /^(\S+) broke promises that (\S+) kept \((.+)\)$/,
    (who, other, broken = '') =>
      `${who} 违反了 ${other} 遵守的保证（${broken.split(', ').map(figureOf).join('、')}）`,
  ],
  [
    /^(\S+) needs (\S+ ± \S+) times the CPU of (\S+) per message$/,
    (who, times, other) => `每条消息 ${who} 的 CPU 是 ${other} 的 ${times} 倍`,
  ],
  [
    /^(\S+) needs (\S+ ± \S+) times the memory of (\S+)$/,
    (who, times, other) => `${who} 的内存是 ${other} 的 ${times} 倍`,
  ],
  [
    /^(\S+) delivers (\S+ ± \S+) times the messages of (\S+)$/,
    (who, times, other) => `${who} 送达的消息是 ${other} 的 ${times} 倍`,
  ],
  [
    /^(.+) of (\S+) is (\S+ ± \S+) times that of (\S+)$/,
    (figure = '', who, times, other) => `${who} 的${figureOf(figure)} 是 ${other} 的 ${times} 倍`,
  ],
  [/^([\w. ]+): no difference shown$/, (figure = '') => `${figureOf(figure)}：没有显示出差异`],
  [/^([\w. ]+): not comparable$/, (figure = '') => `${figureOf(figure)}：不可比较`],
];

/** A sentence of the program, without its full stop; null for one that is not known. */
export function verdictOf(text: string): string | null {
  for (const [form, words] of FORMS) {
    const found = form.exec(text);
    if (found) return words(...found.slice(1));
  }
  // The conclusion of a comparison has several parts.
  const parts = text.split('; ');
  const told = parts.length > 1 ? parts.map((part) => verdictOf(part)) : [null];
  return told.includes(null) ? null : told.join('；');
}
