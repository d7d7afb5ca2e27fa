import type { BenchLimits } from '../../api/bench';
import { count, figure, joined, memory } from '../../format/numbers';
import { type Language, span } from '../../format/time';
import { t } from './texts';

/** What a run may take, in sentences; a limit that is not set has none. */
export function limitSentences(limits: BenchLimits, language: Language): string[] {
  const found = [t('lim.process')];
  if (limits.nice !== null && limits.nice > 0) found.push(t('lim.nice', { nice: limits.nice }));
  if (limits.cores !== null)
    found.push(t('lim.cores', { cores: figure(limits.cores), all: figure(limits.cores_of) }));
  if (limits.memory_bytes !== null)
    found.push(t('lim.memory', { memory: joined(memory(limits.memory_bytes)) }));
  if (limits.clients_max !== null) found.push(t('lim.clients', { clients: count(limits.clients_max) }));
  if (limits.duration_secs_max !== null)
    found.push(t('lim.span', { span: span(limits.duration_secs_max, language) }));
  found.push(t('lim.one'));
  if (limits.runs_kept !== null) found.push(t('lim.kept', { runs: count(limits.runs_kept) }));
  return found;
}
