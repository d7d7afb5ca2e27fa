// Names of settings in texts, which lead to the setting.
import type { Piece } from '../i18n/texts';

const SECTIONS =
  'acl|alarms|auth|limits|listeners|management|node|protection|shared|sinks|storage|sys|telemetry|tls';
const NAME = new RegExp(String.raw`\b(?:${SECTIONS})(?:\.[a-z][a-z0-9_]*)+\b`);

/** Whether a text is the name of a setting, such as `limits.client.queue`. */
export function isSetting(text: string): boolean {
  return NAME.exec(text)?.[0] === text;
}

/** A sentence of the broker, in which names of settings are pieces of their own. */
export function withSettings(text: string): Piece[] {
  return text
    .split(new RegExp(`(${NAME.source})`))
    .filter((part) => part !== '')
    .map((part) => ({ text: part, look: isSetting(part) ? 'code' : 'plain' }));
}
