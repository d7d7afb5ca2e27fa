import type { BenchLimits } from '../../api/bench';
import { count, figure, joined, memory } from '../../format/numbers';
import { type Language, span } from '../../format/time';
import { t } from './texts';

/** What a run may take, in sentences. */
export function limitSentences(limits: BenchLimits, language: Language): string[] {
  return [
    t('lim.process'),
    ...(limits.nice > 0 ? [t('lim.nice', { nice: limits.nice })] : []),
    t('lim.cores', { cores: figure(limits.cores), all: figure(limits.cores_of) }),
    t('lim.memory', { memory: joined(memory(limits.memory_bytes)) }),
    t('lim.clients', { clients: count(limits.clients_max) }),
    t('lim.span', { span: span(limits.duration_secs_max, language) }),
    t('lim.one'),
    t('lim.kept', { runs: count(limits.runs_kept) }),
  ];
}
