// What births of Sparkplug have told this page about names of metrics.
import type { Schemas } from '../../api/client';
import { type Aliases, Births, birthsOf, decodeSparkplug } from '../../format/decode/sparkplug';
import { bytesOf } from '../../format/payload';

class NamedMetrics {
  readonly #births = new Births();
  /** Changes with every birth that came. */
  #came = $state(0);
  #last = new Map<string, string>();

  /** Takes the newest message of a topic, if it is a birth. */
  take(topic: string, detail: Schemas['TopicInFull'] | null | undefined): void {
    const newest = detail?.values.at(-1) ?? detail?.figures?.value;
    if (!newest || !birthsOf(topic).includes(topic) || this.#last.get(topic) === newest.at) return;
    const bytes = bytesOf(newest);
    if (!bytes) return;
    if (this.#last.size > Births.MOST) this.#last.clear();
    this.#last.set(topic, newest.at);
    this.#births.learn(topic, bytes);
    this.#came += 1;
  }

  of(topic: string): Aliases {
    void this.#came;
    return this.#births.of(topic);
  }

  /** Whether a payload has metrics without a name. */
  missing(topic: string, bytes: Uint8Array): boolean {
    try {
      const metrics = decodeSparkplug(bytes, this.of(topic), true).get('metrics');
      return Array.isArray(metrics) && metrics.some((one) => one instanceof Map && !one.has('name'));
    } catch {
      return false;
    }
  }
}

export const births = new NamedMetrics();
