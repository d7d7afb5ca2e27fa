import type { Plugin } from 'vite';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

// Where `npm run dev` finds a broker.
const broker = process.env['THRUM_URL'] ?? 'http://127.0.0.1:8080';
const forwarded = { target: broker, changeOrigin: false };

/**
 * Lets the browser paint the mark without the style sheet of the pages: it loads beside, and `styled.ts` puts it in
 * force. It stays in the head, in front of the style sheets of single pages, which count after it.
 */
function stylesBesideTheMark(): Plugin {
  return {
    name: 'styles-beside-the-mark',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => {
        const [link] = /<link rel="stylesheet"[^>]*\/assets\/[^>]*>/.exec(html) ?? [];
        if (link === undefined) return html;
        const beside = link.replace('<link', '<link data-pages media="not all"');
        // What is not in force has the least priority.
        const soon = link.replace('rel="stylesheet"', 'rel="preload" as="style"');
        return html.replace(link, () => `${soon}\n    ${beside}`);
      },
    },
  };
}

export default defineConfig({
  // Relative addresses: the dashboard works below any path.
  base: './',
  plugins: [svelte(), stylesBesideTheMark()],
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
