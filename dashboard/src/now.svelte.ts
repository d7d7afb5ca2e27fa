// The time for ages on the page: it moves once a second, not with every value.
class Now {
  ms = $state(Date.now());

  start(): () => void {
    const timer = setInterval(() => (this.ms = Date.now()), 1000);
    return () => clearInterval(timer);
  }
}

export const now = new Now();
