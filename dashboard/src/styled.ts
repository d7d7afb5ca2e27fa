// The style sheet of all pages comes beside the first paint (vite.config.ts). It stands in front of those of single
// pages, which count after it.

/** Puts the styles of all pages in force, and waits for them. */
export async function styled(root: ParentNode = document): Promise<void> {
  const link = root.querySelector<HTMLLinkElement>('link[data-pages]');
  if (!link) return;
  link.media = 'all';
  if (link.sheet !== null) return;
  await new Promise((done) => {
    link.addEventListener('load', done);
    // Without it the page can be read, though it is ugly.
    link.addEventListener('error', done);
  });
}
