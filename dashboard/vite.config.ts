import type { Plugin } from 'vite';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Where `npm run dev` finds a broker.
const broker = process.env['THRUM_URL'] ?? 'http://127.0.0.1:8080';
const forwarded = { target: broker, changeOrigin: false };

/**
 * Moves the style sheet of the pages from the head behind the mark in the body: the browser paints the mark without it.
 * Scripts wait for style sheets in front of them, so that no page is without styles.
 */
function stylesBehindTheMark(): Plugin {
  return {
    name: 'styles-behind-the-mark',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => {
        const [link] = /<link rel="stylesheet"[^>]*\/assets\/[^>]*>/.exec(html) ?? [];
        return link === undefined
          ? html
          : html.replace(link, '').replace('<noscript', () => `${link}\n    <noscript`);
      },
    },
  };
}

export default defineConfig({
  // Relative addresses: the dashboard works below any path.
  base: './',
  plugins: [svelte(), stylesBehindTheMark()],
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
