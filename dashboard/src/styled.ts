// The style sheet of all pages comes beside the first paint (vite.config.ts). It stands in front of those of single
// pages, which count after it.

/** A page without styles is better than none. */
const MOST_MS = 3000;

/** Puts the styles of all pages in force, and waits for them. */
export async function styled(): Promise<void> {
  const link = document.querySelector<HTMLLinkElement>('link[data-pages]');
  if (!link) return;
  link.media = 'all';
  if (link.sheet !== null) return;
  await new Promise((done) => {
    link.addEventListener('load', done);
    // Without it the page can be read, though it is ugly. The error may have come before.
    link.addEventListener('error', done);
    setTimeout(done, MOST_MS);
  });
}
