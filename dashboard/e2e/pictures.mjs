// Takes pictures of pages in both themes and four widths, to be looked at.
//   node e2e/pictures.mjs URL FOLDER NAME PASSWORD [LANGUAGE] PLACE…      (a place: home=#/ )
import { chromium } from '@playwright/test';

const [url, folder, name, password, ...rest] = process.argv.slice(2);
const language = rest[0]?.includes('=') ? 'en' : rest.shift();
const WIDTHS = { phone: [400, 860], tablet: [820, 1100], desktop: [1280, 900], wide: [3840, 2160] };
const only = process.env.ONLY?.split(',');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
for (const [width, [w, h]] of Object.entries(WIDTHS)) {
  for (const theme of ['light', 'dark']) {
    if (only && !only.includes(`${theme}-${width}`)) continue;
    const context = await browser.newContext({ viewport: { width: w, height: h }, colorScheme: theme });
    await context.addInitScript((chosen) => localStorage.setItem('thrum-language', chosen), language ?? 'en');
    const page = await context.newPage();
    page.on('console', (line) => line.type() === 'error' && console.log(`${theme}-${width}: ${line.text()}`));
    page.on('pageerror', (error) => console.log(`${theme}-${width}: ${error.stack}`));
    await page.goto(url);
    if (name !== '') {
      const answer = await page.evaluate(
        async (body) =>
          (
            await fetch('api/v1/login', {
              method: 'POST',
              headers: { 'content-type': 'application/json' },
              body,
            })
          ).status,
        JSON.stringify({ name, password }),
      );
      if (answer !== 200) console.log(`login: ${answer}`);
    }
    for (const place of rest) {
      const [label, ...address] = place.split('=');
      await page.goto(`${url}${address.join('=')}`);
      await page.reload();
      await page.waitForTimeout(Number(process.env.WAIT ?? 2500));
      const wide = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      if (wide > 0) console.log(`${label} ${theme}-${width}: scrolls sideways by ${wide}px`);
      await page.screenshot({ path: `${folder}/${label}-${theme}-${width}.png`, fullPage: true });
    }
    await context.close();
  }
}
await browser.close();
