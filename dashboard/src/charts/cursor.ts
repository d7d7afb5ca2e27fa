/** Where a key moves the cursor of a chart: null takes it away, undefined is a key that means nothing here. */
export function stepped(key: string, cursor: number | null, length: number): number | null | undefined {
  if (length === 0) return undefined;
  const last = length - 1;
  const from = cursor ?? last;
  switch (key) {
    case 'ArrowLeft':
      return Math.max(0, from - 1);
    case 'ArrowRight':
      return Math.min(last, from + 1);
    case 'PageUp':
      return Math.max(0, from - 30);
    case 'PageDown':
      return Math.min(last, from + 30);
    case 'Home':
      return 0;
    case 'End':
      return last;
    case 'Escape':
      return cursor === null ? undefined : null;
    default:
      return undefined;
  }
}
