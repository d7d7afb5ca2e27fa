// The sentence about clients with a problem.

/** Its key: clients that are away are none of those that are connected. */
export function sayOf(
  troubled: number,
  connected: number,
): 'say.problems' | 'say.problems.away' | 'say.problems.both' {
  if (connected >= troubled) return 'say.problems';
  return connected === 0 ? 'say.problems.away' : 'say.problems.both';
}
