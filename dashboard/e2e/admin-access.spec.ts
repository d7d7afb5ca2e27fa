import { createHmac } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, type Page, test } from '@playwright/test';
import { Broker, Client, NAME } from './broker';
import { accessible, go, signIn, watched } from './page';

let broker: Broker;
const SECRET = 'meter-secret-of-the-test';

test.describe.configure({ mode: 'serial' });
test.beforeAll(async () => {
  broker = await Broker.start({ rules: false });
});
test.afterAll(() => broker.stop());

const dialog = (page: Page) => page.getByRole('dialog');
const row = (page: Page, name: string) => page.getByRole('row', { name });

test('the tab is in the address, and one that does not exist is told', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin');
  await expect(page.getByRole('link', { name: 'Access', exact: true })).toHaveAttribute(
    'aria-current',
    'page',
  );
  await expect(page.getByText('There are no users yet.')).toBeVisible();
  await accessible(page);
  await page.getByRole('link', { name: 'People', exact: true }).click();
  expect(page.url()).toContain('#/admin/people');
  await expect(page).toHaveTitle(/People/);
  await go(page, broker, 'admin/nothing');
  await expect(page.getByText('There is no such page.')).toBeVisible();
  expect(errors).toEqual([]);
});

test('on a phone the chosen tab is in view', async ({ page }) => {
  await page.setViewportSize({ width: 400, height: 860 });
  await signIn(page, broker, '#/admin/test');
  const tab = page.getByRole('link', { name: 'Test client', exact: true });
  await expect(tab).toHaveAttribute('aria-current', 'page');
  await expect(tab).toBeInViewport({ ratio: 1 });
  await page.getByRole('link', { name: 'Settings', exact: true }).click();
  await expect(page.getByRole('link', { name: 'Settings', exact: true })).toBeInViewport({ ratio: 1 });
});

test('a list that cannot be read says so, and is read again', async ({ page }) => {
  await signIn(page, broker, '#/admin/audit');
  await page.route('**/api/v1/users?*', (route) => route.abort());
  await page.getByRole('link', { name: 'Access', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('The broker does not answer');
  await accessible(page);
  await page.unroute('**/api/v1/users?*');
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByText('There are no users yet.')).toBeVisible();
});

test('a role and a user are added, changed and removed', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/access/groups');
  await page.getByRole('button', { name: 'Add a role' }).click();
  await dialog(page).getByLabel('Role').fill('meter');
  await dialog(page).getByLabel('Rules').fill('allow pub meters/%u/#\nallow sub news/#');
  await accessible(page);
  await dialog(page).getByRole('button', { name: 'Add the role' }).click();
  await expect(row(page, 'meter allow pub')).toBeVisible();

  await go(page, broker, 'admin/access');
  await page.getByRole('button', { name: 'Add a user' }).click();
  await dialog(page).getByLabel('Name', { exact: true }).fill('meter-1');
  await dialog(page).getByLabel('Password', { exact: true }).fill(SECRET);
  await dialog(page).getByRole('button', { name: 'meter', exact: true }).click();
  await dialog(page).getByLabel('Own rules').fill('permit everything');
  await accessible(page);
  await dialog(page).getByRole('button', { name: 'Add the user' }).click();
  await expect(dialog(page).getByRole('alert')).toContainText('permit');
  await dialog(page).getByLabel('Own rules').fill('allow sub $SYS/broker/uptime');
  await dialog(page).getByText('The same as a command').click();
  await expect(dialog(page).locator('pre')).toContainText('thrum users add meter-1 --role meter');
  await expect(dialog(page).locator('pre')).not.toContainText(SECRET);
  await dialog(page).getByRole('button', { name: 'Add the user' }).click();
  await expect(row(page, 'meter-1')).toContainText('meter');
  await expect(page.getByRole('heading', { level: 1 })).toContainText('1 user is in the store');

  await page.getByRole('button', { name: 'Change meter-1' }).click();
  await dialog(page).getByLabel('Disabled').check();
  await expect(dialog(page)).toContainText('This disconnects 0 clients');
  await dialog(page).getByRole('button', { name: 'Change the user' }).click();
  await expect(row(page, 'meter-1')).toContainText('disabled');
  await page.getByRole('button', { name: 'Change meter-1' }).click();
  await dialog(page).getByLabel('Disabled').uncheck();
  await dialog(page).getByRole('button', { name: 'Change the user' }).click();
  await expect(row(page, 'meter-1')).toContainText('may log in');
  await accessible(page);
  expect(errors).toEqual([]);
});

test('a file of users is looked at before it is imported', async ({ page }) => {
  await signIn(page, broker, '#/admin/access');
  await page.getByRole('button', { name: 'Import…' }).click();
  const lines = ['{"user":"imported-1","disabled":true}', '{"user":"meter-1"}', ''].join('\n');
  await dialog(page)
    .getByLabel('File', { exact: true })
    .setInputFiles({ name: 'users.jsonl', mimeType: 'text/plain', buffer: Buffer.from(lines) });
  await expect(dialog(page).getByRole('status')).toContainText('add 1 user');
  await expect(dialog(page).getByRole('status')).toContainText('imported-1');
  await expect(dialog(page).getByRole('status')).toContainText('replaces the password of 1 user');
  await accessible(page);
  await dialog(page)
    .getByLabel('File', { exact: true })
    .setInputFiles({
      name: 'users.jsonl',
      mimeType: 'text/plain',
      buffer: Buffer.from('{"user":"imported-1","disabled":true}\n'),
    });
  await dialog(page).getByRole('button', { name: 'Import 1 user' }).click();
  await expect(row(page, 'imported-1')).toBeVisible();
  await page.getByLabel('Find a name').fill('imported');
  await page.keyboard.press('Enter');
  await expect(row(page, 'meter-1')).toBeHidden();
  expect(page.url()).toContain('name=imported');
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save this list as CSV' }).click();
  expect(await readFile(await (await saved).path(), 'utf8')).toContain('imported-1');
  await page.getByRole('button', { name: 'Remove imported-1' }).click();
  await dialog(page).getByRole('button', { name: 'Remove 1 user' }).click();
  await expect(page.getByText('No user matches.')).toBeVisible();
});

test('the tester names the rule that decides, and the login test says which backend refuses', async ({
  page,
}) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/access/test');
  await page.getByLabel('Client identifier').first().fill('m1');
  await page.getByLabel('User (optional)').fill('meter-1');
  await page.getByLabel('Topic', { exact: true }).fill('meters/meter-1/power');
  await page.getByRole('button', { name: 'Ask the broker' }).click();
  const may = page.getByRole('region', { name: 'May it…?' });
  await expect(may.getByRole('status')).toContainText('Yes.');
  await expect(may.getByRole('status')).toContainText('role meter');
  await expect(may.getByRole('list')).toContainText('decides');
  expect(page.url()).toContain('topic=meters');
  await page.reload();
  await expect(may.getByRole('status')).toContainText('Yes.');
  await page.getByLabel('Topic', { exact: true }).fill('other');
  await page.getByRole('button', { name: 'Ask the broker' }).click();
  await expect(may.getByRole('status')).toContainText('No.');

  const login = page.getByRole('region', { name: 'Try a login' });
  await login.getByLabel('User', { exact: true }).fill('meter-1');
  await login.getByLabel('Password or token').fill('wrong-wrong');
  await login.getByRole('button', { name: 'Try the login' }).click();
  await expect(login.getByRole('status')).toContainText('It would be refused.');
  await expect(login.getByRole('list')).toContainText('users refuses it: wrong password');
  await expect(login.getByLabel('Password or token')).toHaveValue('');
  await login.getByLabel('Password or token').fill(SECRET);
  await login.getByRole('button', { name: 'Try the login' }).click();
  await expect(login.getByRole('status')).toContainText('as meter-1, by users');
  await expect(login.getByLabel('Password or token')).toHaveValue('');
  expect(page.url()).not.toContain(SECRET);
  expect(await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]))).not.toContain(SECRET);
  await accessible(page);
  expect(errors).toEqual([]);
});

test('rules are a draft until the broker has checked them', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/access/rules');
  const draft = page.getByRole('region', { name: 'Rules set here' });
  await draft.getByLabel('New rule').fill('alow all pub a/#');
  await draft.getByRole('button', { name: 'Add' }).click();
  await draft.getByRole('button', { name: 'Check and apply…' }).click();
  await expect(draft.getByRole('alert')).toContainText('alow');
  await draft.getByLabel('Rule 1', { exact: true }).fill('allow all pubsub #');
  await draft.getByLabel('New rule').fill('deny all pub locked/#');
  await page.keyboard.press('Enter');
  await draft.getByRole('button', { name: 'Ask rule 2 earlier' }).click();
  await expect(draft.getByLabel('Rule 1', { exact: true })).toHaveValue('deny all pub locked/#');
  await draft.getByRole('button', { name: 'Check and apply…' }).click();
  await expect(dialog(page)).toContainText('In force at once');
  await accessible(page);
  await dialog(page).getByRole('button', { name: 'Apply 2 lines' }).click();
  const force = page.getByRole('region', { name: 'In force, in the order asked' });
  await expect(force.getByRole('row').nth(1)).toContainText('deny all pub locked/#');
  await expect(force.getByRole('row').nth(1)).toContainText('acl.rules');
  await page.getByLabel('for the user').fill('meter-1');
  await page.keyboard.press('Enter');
  await expect(force).toContainText('role meter');
  await accessible(page);
  expect(errors).toEqual([]);
});

test('a ban says whom it cuts off, does it, and is lifted', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/access/bans');
  await expect(page.getByText('Nobody is banned.')).toBeVisible();
  const client = await Client.connect(broker.mqttPort, 'noisy-1');
  await page.getByRole('button', { name: 'Ban…' }).click();
  await dialog(page).getByLabel('client', { exact: true }).fill('noisy-1');
  await expect(dialog(page).getByRole('status')).toContainText('disconnects 1 connected client');
  await dialog(page).getByLabel('Reason').fill('sends garbage');
  await accessible(page);
  await dialog(page).getByRole('button', { name: 'Ban, and cut 1 client off' }).click();
  await expect(row(page, 'noisy-1')).toContainText('sends garbage');
  await accessible(page);
  await page.getByRole('button', { name: 'Lift the ban of client noisy-1' }).click();
  await dialog(page).getByRole('button', { name: 'Lift 1 ban' }).click();
  await expect(page.getByText('Nobody is banned.')).toBeVisible();
  client.close();
  expect(errors).toEqual([]);
});

test('a key is shown once, and revoked', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/people');
  await page.getByRole('button', { name: 'Make a key…' }).click();
  await dialog(page).getByLabel('For', { exact: true }).fill('grafana');
  await accessible(page);
  await dialog(page).getByRole('button', { name: 'Make the key' }).click();
  const key = await dialog(page).getByLabel('Key', { exact: true }).textContent();
  expect(key).toMatch(/^thrum_/);
  const asked = () =>
    page.request.get(`${broker.url}api/v1/status`, {
      headers: { authorization: `Bearer ${key ?? ''}`, cookie: '' },
    });
  expect((await asked()).status()).toBe(200);
  await page.keyboard.press('Escape');
  await expect(dialog(page)).toBeVisible();
  await dialog(page).getByRole('button', { name: 'I have copied it' }).click();
  await expect(row(page, 'grafana')).toContainText('metrics:read');
  await expect(page.locator('main')).not.toContainText(key ?? '');
  await page.getByRole('button', { name: 'Revoke the key for grafana' }).click();
  await dialog(page).getByRole('button', { name: 'Revoke 1 key' }).click();
  await expect(page.getByText('There are no API keys.')).toBeVisible();
  await accessible(page);
  expect((await asked()).status()).toBe(401);
  expect(errors).toEqual([]);
});

async function addPerson(page: Page, name: string, role: string, password: string) {
  await page.getByRole('button', { name: 'Add an administrator' }).click();
  await dialog(page).getByLabel('Name', { exact: true }).fill(name);
  await dialog(page).getByLabel('Password', { exact: true }).fill(password);
  await dialog(page).getByLabel('Role').selectOption(role);
  await dialog(page).getByRole('button', { name: 'Add the administrator' }).click();
  await expect(row(page, name)).toBeVisible();
}

async function signInAs(page: Page, name: string, password: string, place: string) {
  await page.goto(`${broker.url}${place}`);
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

test('the last administrator cannot be removed, and a viewer sees what a viewer may', async ({
  page,
  browser,
}) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/people');
  await expect(page.getByRole('button', { name: `Remove ${NAME}` })).toBeDisabled();
  await addPerson(page, 'vera', 'viewer', 'a-long-password-of-vera');
  await accessible(page);

  const other = await (await browser.newContext({ locale: 'en-GB' })).newPage();
  await signInAs(other, 'vera', 'a-long-password-of-vera', '#/admin/access');
  await expect(row(other, 'meter-1')).toBeVisible();
  await expect(other.getByText('To change it takes the scope users:write')).toBeVisible();
  expect(await other.getByRole('button', { name: /Add|Import|Change|Remove/ }).count()).toBe(0);
  await go(other, broker, 'admin/access/rules');
  await expect(other.getByText('To change it takes the scope admin')).toBeVisible();
  expect(await other.getByLabel('New rule').count()).toBe(0);
  await go(other, broker, 'admin/access/test');
  await expect(other.getByText('It needs the scope admin.')).toBeVisible();
  await expect(other.getByRole('button', { name: 'Ask the broker' })).toBeVisible();
  await go(other, broker, 'admin/access/bans');
  await expect(other.getByText('Nobody is banned.')).toBeVisible();
  expect(await other.getByRole('button', { name: 'Ban…' }).count()).toBe(0);
  for (const [tab, scope] of [
    ['people', 'admin'],
    ['audit', 'audit:read'],
  ] as const) {
    await go(other, broker, `admin/${tab}`);
    await expect(other.getByText(`It needs the scope ${scope}.`)).toBeVisible();
    await accessible(other);
  }
  await go(other, broker, 'account');
  await expect(other.getByRole('heading', { level: 1 })).toContainText('vera');
  await accessible(other);

  await page.reload();
  await page.getByRole('button', { name: 'End the sessions of vera' }).click();
  await dialog(page).getByRole('button', { name: 'End 1 session' }).click();
  await go(other, broker, 'account');
  await expect(other.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await other.context().close();
  expect(errors).toEqual([]);
});

/** The six digits of a secret now (RFC 6238). */
function codeOf(secret: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = Array.from(secret.replace(/\s|=/g, ''))
    .map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  const bytes = (bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const hash = createHmac('sha1', Buffer.from(bytes)).update(step).digest();
  const at = (hash.at(-1) ?? 0) & 15;
  return ((hash.readUInt32BE(at) & 0x7fffffff) % 1_000_000).toString().padStart(6, '0');
}

test('the own account: password, one-time codes, language', async ({ page, browser }) => {
  await signIn(page, broker, '#/admin/people');
  await addPerson(page, 'tom', 'operator', 'first-password-of-tom');
  const own = await (await browser.newContext({ locale: 'en-GB' })).newPage();
  const errors = watched(own);
  await signInAs(own, 'tom', 'first-password-of-tom', '');
  await own.getByRole('button', { name: 'Session of tom' }).click();
  await own.getByRole('link', { name: 'Your account' }).click();
  await own.getByLabel('Password until now').fill('wrong-wrong-wrong');
  await own.getByLabel('New password').fill('second-password-of-tom');
  await own.getByRole('button', { name: 'Change the password' }).click();
  await expect(own.getByRole('alert')).toBeVisible();
  await own.getByLabel('Password until now').fill('first-password-of-tom');
  await own.getByRole('button', { name: 'Change the password' }).click();
  await expect(own.getByText('Your password was changed.')).toBeVisible();

  await own.getByLabel('Your password').fill('second-password-of-tom');
  await own.getByRole('button', { name: 'Switch on…' }).click();
  await expect(own.getByRole('img', { name: /QR code/ })).toBeVisible();
  await accessible(own);
  const secret = (await own.locator('code.secret').textContent()) ?? '';
  await own.getByLabel('First code of the app').fill(codeOf(secret));
  await own.getByRole('button', { name: 'Confirm' }).click();
  await expect(own.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem')).toHaveCount(10);
  const recovery = await own
    .getByRole('list', { name: 'Recovery codes' })
    .getByRole('listitem')
    .first()
    .textContent();
  await accessible(own);
  await own.getByRole('button', { name: 'I have kept them' }).click();

  await own.getByRole('button', { name: 'Session of tom' }).click();
  await own.getByRole('button', { name: 'Sign out' }).click();
  await signInAs(own, 'tom', 'second-password-of-tom', '#/account');
  await own.getByLabel('One-time code').fill(recovery ?? '');
  await own.getByRole('button', { name: 'Sign in' }).click();
  await expect(own.getByRole('heading', { level: 1 })).toContainText('tom');
  await own.getByRole('button', { name: '中文', exact: true }).click();
  await expect(own.getByRole('heading', { level: 1 })).toContainText('您已登录为 tom');
  await own.getByRole('button', { name: '深色', exact: true }).click();
  await expect(own.locator('html')).toHaveAttribute('data-theme', 'dark');
  await accessible(own);
  await own.context().close();
  expect(errors).toEqual([]);
});

test('the audit log shows what was before and after', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/audit?action=user.change');
  await expect(page.getByRole('row')).toHaveCount(3);
  await page
    .getByRole('button', { name: /Details of entry/ })
    .first()
    .click();
  const difference = page.getByRole('region', { name: 'before → after' });
  await expect(difference.locator('.del')).toContainText('disabled = true');
  await expect(difference.locator('.add')).toContainText('disabled = false');
  await accessible(page);
  await page.getByLabel('Who', { exact: true }).fill('nobody');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No entry matches.')).toBeVisible();
  await page.getByRole('button', { name: 'Show all entries' }).click();
  await expect(page.getByRole('cell', { name: 'key.remove' })).toBeVisible();
  await expect(page.locator('main')).not.toContainText(SECRET);
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save this list as JSON' }).click();
  expect(await readFile(await (await saved).path(), 'utf8')).toContain('"action": "key.remove"');
  expect(errors).toEqual([]);
});

test('a draft of rules says what others have changed meanwhile, and keeps the own lines', async ({
  page,
}) => {
  const errors = watched(page);
  await broker.command('config', 'set', 'acl.rules', '["allow all pubsub site/#"]');
  await signIn(page, broker, '#/admin/access/rules');
  await expect(page.getByLabel('Rule 1', { exact: true })).toHaveValue('allow all pubsub site/#');
  await page.getByLabel('New rule').fill('allow all pubsub mine/#');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await broker.command('config', 'set', 'acl.rules', '["deny all pub site/a", "allow all pubsub site/#"]');
  await page.getByRole('button', { name: 'Check and apply…' }).click();
  await expect(page.getByRole('alert')).toContainText('Somebody else has changed these rules');
  await expect(page.getByRole('region', { name: 'What changed meanwhile' }).locator('.add')).toHaveText(
    'deny all pub site/a',
  );
  await expect(dialog(page)).toHaveCount(0);
  await accessible(page);
  await page.getByRole('button', { name: 'Put my changes on what is in force' }).click();
  await expect(page.getByLabel('Rule 1', { exact: true })).toHaveValue('deny all pub site/a');
  await expect(page.getByLabel('Rule 3', { exact: true })).toHaveValue('allow all pubsub mine/#');
  await page.getByRole('button', { name: 'Check and apply…' }).click();
  await dialog(page).getByRole('button', { name: 'Apply 1 line' }).click();
  await expect(page.getByText('The rules are in force.')).toBeVisible();
  const inForce = await page.request.get(`${broker.url}api/v1/config/acl.rules`);
  expect(await inForce.text()).toContain('deny all pub site/a');
  expect(errors).toEqual([]);
});

test('a right that another administrator took away meanwhile is not given back', async ({ page }) => {
  const errors = watched(page);
  await broker.command('roles', 'set', 'shared', '--allow', 'pub a/#', '--allow', 'sub a/#');
  await broker.command(
    'users',
    'add',
    'shared',
    '--superuser',
    '--password-file',
    `${broker.folder}/password`,
  );
  await signIn(page, broker, '#/admin/access?name=shared');
  await expect(row(page, 'shared')).toContainText('superuser');
  await broker.command('users', 'change', 'shared', '--superuser', 'false');
  await page.getByRole('button', { name: 'Change shared' }).click();
  await expect(dialog(page).getByRole('button', { name: 'Change the user' })).toBeDisabled();
  await dialog(page).getByLabel('Roles').fill('shared');
  await dialog(page).getByRole('button', { name: 'Change the user' }).click();
  await expect(dialog(page).getByRole('alert')).toContainText('has changed since it was read');
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  await expect(row(page, 'shared')).not.toContainText('superuser');
  await page.getByRole('button', { name: 'Change shared' }).click();
  await dialog(page).getByLabel('Roles').fill('shared');
  await dialog(page).getByRole('button', { name: 'Change the user' }).click();
  await expect(page.getByText('shared was changed.')).toBeVisible();
  await expect(row(page, 'shared')).not.toContainText('superuser');

  await go(page, broker, 'admin/access/groups');
  await expect(row(page, 'shared')).toContainText('allow pub a/#');
  await broker.command('roles', 'set', 'shared', '--allow', 'pub a/#');
  await page.getByRole('button', { name: 'Change shared' }).click();
  await dialog(page).getByLabel('Rules').fill('allow pub a/#\nallow sub a/#\nallow pub b/#');
  await dialog(page).getByRole('button', { name: 'Change the role' }).click();
  await expect(dialog(page).getByRole('alert')).toContainText('has changed since it was read');
  await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  expect(await broker.command('roles', 'ls', '-o', 'json')).not.toContain('pub b/#');
  expect(errors).toEqual([]);
});

test('nothing is removed, and no password is set, that another administrator changed meanwhile', async ({
  page,
}) => {
  const errors = watched(page);
  const password = ['--password-file', `${broker.folder}/password`];
  await broker.command('users', 'add', 'renewed', ...password);
  await broker.command('roles', 'set', 'renewed', '--allow', 'pub a/#');
  await broker.command('users', 'groups', 'set', 'renewed', '--allow', 'pub a/#');
  await signIn(page, broker, '#/admin/access?name=renewed');
  await expect(row(page, 'renewed')).toBeVisible();

  await page.getByRole('button', { name: 'Another password for renewed' }).click();
  await broker.command('users', 'passwd', 'renewed', ...password);
  await dialog(page).getByLabel('Password', { exact: true }).fill('a-password-of-yesterday');
  await dialog(page).getByRole('button', { name: 'Set the password' }).click();
  await expect(dialog(page).getByRole('alert')).toContainText(
    'renewed has changed since it was read: it has another password',
  );
  await accessible(page);
  await page.keyboard.press('Escape');

  await page.getByRole('button', { name: 'Remove renewed' }).click();
  await broker.command('users', 'change', 'renewed', '--superuser', 'true');
  await dialog(page).getByRole('button', { name: 'Remove 1 user' }).click();
  await expect(dialog(page).getByRole('alert')).toContainText(
    'renewed has changed since it was read: now superuser',
  );
  await accessible(page);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Remove renewed' }).click();
  await dialog(page).getByRole('button', { name: 'Remove 1 user' }).click();
  await expect(page.getByText('renewed was removed.')).toBeVisible();

  await go(page, broker, 'admin/access/groups');
  for (const [kind, verb, words] of [
    ['roles', 'Remove 1 role', ['roles']],
    ['groups', 'Remove 1 group', ['users', 'groups']],
  ] as const) {
    const card = page.getByRole('region', { name: new RegExp(`^${kind}$`, 'i') });
    await card.getByRole('button', { name: 'Remove renewed' }).click();
    await broker.command(...words, 'set', 'renewed', '--allow', 'pub b/#');
    await dialog(page).getByRole('button', { name: verb }).click();
    await expect(dialog(page).getByRole('alert')).toContainText('rules + allow pub b/#, − allow pub a/#');
    await page.keyboard.press('Escape');
    expect(await broker.command(...words, 'ls', '-o', 'json')).toContain('renewed');
    await card.getByRole('button', { name: 'Remove renewed' }).click();
    await dialog(page).getByRole('button', { name: verb }).click();
    await expect(card.getByRole('row', { name: 'renewed' })).toHaveCount(0);
  }
  expect(errors).toEqual([]);
});

test('a role that is added replaces none that there is', async ({ page }) => {
  const errors = watched(page);
  await broker.command('roles', 'set', 'taken', '--allow', 'pub taken/#');
  await signIn(page, broker, '#/admin/access/groups');
  for (const [add, kind, verb] of [
    ['Add a role', 'Role', 'Add the role'],
    ['Add a group', 'Group', 'Add the group'],
  ] as const) {
    if (kind === 'Group') await broker.command('users', 'groups', 'set', 'taken', '--allow', 'pub taken/#');
    await page.getByRole('button', { name: add }).click();
    await dialog(page).getByLabel(kind, { exact: true }).fill('taken');
    await dialog(page).getByLabel('Rules').fill('allow pub other/#');
    await dialog(page).getByRole('button', { name: verb }).click();
    await expect(dialog(page).getByRole('alert')).toContainText('"taken" already; nothing was changed');
    await dialog(page).getByRole('button', { name: 'Cancel' }).click();
  }
  const roles = await broker.command('roles', 'ls', '-o', 'json');
  expect([roles.includes('pub taken/#'), roles.includes('other/#')]).toEqual([true, false]);
  expect(errors).toEqual([]);
});

test('nobody is banned before it is known whom that cuts off', async ({ page }) => {
  const errors = watched(page);
  await signIn(page, broker, '#/admin/access/bans');
  let answer: () => void = () => undefined;
  const asked = new Promise<void>((done) => (answer = done));
  await page.route('**/api/v1/clients?*', async (route) => {
    await asked;
    await route.continue();
  });
  await page.getByRole('button', { name: 'Ban…' }).first().click();
  await dialog(page).getByLabel('client', { exact: true }).fill('somebody');
  const ban = dialog(page).getByRole('button', { name: 'Ban', exact: true });
  await expect(dialog(page).getByRole('status')).toContainText('Counting whom it will hit');
  await expect(ban).toBeDisabled();
  answer();
  await expect(ban).toBeEnabled();
  await page.unroute('**/api/v1/clients?*');
  await page.route('**/api/v1/clients?*', (route) => route.abort());
  await dialog(page).getByLabel('client', { exact: true }).fill('another');
  await expect(dialog(page).getByRole('status')).toContainText('is not known: the broker does not answer');
  await expect(ban).toBeDisabled();
  await dialog(page).getByLabel('Disconnect those that are connected').uncheck();
  await expect(ban).toBeEnabled();
  expect(errors).toEqual([]);
});
