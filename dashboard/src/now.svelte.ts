// The time for ages on the page: it moves once a second, not with every value. While values come it moves with one
// of them, so that the page is drawn once for both.

/** It moves with a value when so much has passed. */
const WITH_VALUE_MS = 900;
/** Without a value it waits a little for one, */
const WAIT_MS = 1250;
/** unless none has come for so long. */
const QUIET_MS = 2500;

export class Now {
  ms = $state(Date.now());
  #valueAtMs = 0;

  start(): () => void {
    const timer = setInterval(() => {
      const ms = Date.now();
      const wait = ms - this.#valueAtMs > QUIET_MS ? WITH_VALUE_MS : WAIT_MS;
      if (Math.abs(ms - this.ms) >= wait) this.ms = ms;
    }, 250);
    return () => clearInterval(timer);
  }

  /** Values have come, and the page is about to change. */
  withValues(): void {
    const ms = Date.now();
    this.#valueAtMs = ms;
    if (Math.abs(ms - this.ms) >= WITH_VALUE_MS) this.ms = ms;
  }
}

export const now = new Now();
