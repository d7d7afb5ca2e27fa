export default {
  say: 'You are signed in as **{name}**.',
} as const;
