import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Where `npm run dev` finds a broker.
const broker = process.env['THRUM_URL'] ?? 'http://127.0.0.1:8080';
const forwarded = { target: broker, changeOrigin: false };

export default defineConfig({
  // Relative addresses: the dashboard works below any path.
  base: './',
  plugins: [svelte()],
  build: {
    // The folder above it is watched by the build of the program, which contains the pages.
    outDir: 'dist/site',
    emptyOutDir: true,
    target: 'es2022',
    // No data: addresses, which the broker's Content-Security-Policy forbids.
    assetsInlineLimit: 0,
    manifest: true,
    modulePreload: { polyfill: false },
  },
  server: {
    port: 5173,
    proxy: { '/api': forwarded, '/mqtt': { ...forwarded, ws: true }, '/metrics': forwarded },
  },
  test: {
    include: ['src/**/*.test.ts'],
    environment: 'node',
  },
});
