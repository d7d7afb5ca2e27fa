// What a look at payloads was at, in Chinese. Targets of other actions are names and topics.

/** The target of a line; that of another action as it is. */
export function targetOf(action: string, target: string): string {
  if (action !== 'messages.watched') return target;
  return target
    .replace(/ and (\d+) more$/, '，另有 $1 项')
    .replace(/^the top level(?=，|$)/, '顶层')
    .replace(/^level (.*\/)(?=，|$)/, '层级 $1')
    .replace(/^topic /, '主题 ')
    .replace(/^client /, '客户端 ')
    .replace(/^address /, '地址 ');
}
