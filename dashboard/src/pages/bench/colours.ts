/** Colours of compared runs: the first one is grey, because the others are measured by it. */
export const COLOURS = ['var(--s8)', 'var(--s1)', 'var(--s2)', 'var(--s4)'] as const;
