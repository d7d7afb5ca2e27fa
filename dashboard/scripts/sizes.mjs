// Prints what a browser loads for the first page, and fails above the budget.
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';

const budget = 120 * 1024;
const dist = new URL('../dist/site/', import.meta.url);
const size = async (name) => gzipSync(await readFile(new URL(name, dist)), { level: 9 }).length;

const manifest = JSON.parse(await readFile(new URL('.vite/manifest.json', dist), 'utf8'));
const wanted = new Set();
function add(key) {
  const chunk = manifest[key];
  if (!chunk || wanted.has(chunk.file)) return;
  wanted.add(chunk.file);
  for (const css of chunk.css ?? []) wanted.add(css);
  for (const imported of chunk.imports ?? []) add(imported);
}
// The shell, the first page, and the charts that it loads.
add('index.html');
for (const key of ['src/pages/home/Home.svelte', 'src/charts/Plot.svelte']) add(key);

let js = 0;
let css = 0;
for (const file of wanted) {
  const bytes = await size(file);
  if (file.endsWith('.css')) css += bytes;
  else js += bytes;
}
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
const html = await size('index.html');
console.log(
  `first page, gzip: JavaScript ${kib(js)} of ${kib(budget)}, CSS ${kib(css)}, HTML ${kib(html)}, together ${kib(js + css + html)}`,
);
if (js > budget) {
  console.error('The JavaScript of the first page is above its budget.');
  process.exit(1);
}
