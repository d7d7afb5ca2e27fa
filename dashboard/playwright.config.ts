import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

// Debian's browser where there is one; else the one of "npx playwright install chromium".
const debian = '/usr/bin/chromium';
const executablePath = process.env['CHROMIUM'] ?? (existsSync(debian) ? debian : undefined);

export default defineConfig({
  testDir: 'e2e',
  // What measures runs alone in the gate, the others beside other suites.
  projects: [
    { name: 'pages', testMatch: '*.spec.ts', testIgnore: 'budgets.spec.ts' },
    { name: 'budgets', testMatch: 'budgets.spec.ts' },
  ],
  timeout: 60_000,
  expect: { timeout: 15_000 },
  // The tests of a file have one broker, and follow each other. They mostly wait: more files run than there are cores.
  workers: 3,
  fullyParallel: false,
  reporter: 'list',
  forbidOnly: true,
  use: {
    locale: 'en-GB',
    launchOptions: { args: ['--no-sandbox'], ...(executablePath === undefined ? {} : { executablePath }) },
  },
});
