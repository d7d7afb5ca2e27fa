import { existsSync } from 'node:fs';
import { defineConfig } from '@playwright/test';

// Debian's browser where there is one; else the one of "npx playwright install chromium".
const debian = '/usr/bin/chromium';
const executablePath = process.env['CHROMIUM'] ?? (existsSync(debian) ? debian : undefined);

export default defineConfig({
  testDir: 'e2e',
  testMatch: '*.spec.ts',
  timeout: 40_000,
  expect: { timeout: 8000 },
  // The broker of the tests is one, and so is its order of events.
  workers: 1,
  fullyParallel: false,
  reporter: 'list',
  use: {
    locale: 'en-GB',
    launchOptions: { args: ['--no-sandbox'], ...(executablePath === undefined ? {} : { executablePath }) },
  },
});
