export default {
  soon: 'This tab is not built yet.',
} as const;
