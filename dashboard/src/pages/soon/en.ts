export default {
  bench: 'Benchmarks run from the command line for now.',
  'bench.text': 'This page will list runs, start new ones and show them live.',
  data: 'There is no page for sinks yet.',
  'data.text':
    'Sinks write messages to databases and other brokers; they are configured in the file of the broker.',
} as const;
