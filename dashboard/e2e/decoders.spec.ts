import { expect, test } from '@playwright/test';
import { Broker, Client } from './broker';
import { accessible, go, signIn, watched } from './page';

const SCHEMA = 'syntax = "proto3"; message Reading { double temperature = 1; string unit = 2; }';
const READING = Buffer.from('090000000000003540120143', 'hex');
const BIRTH = Buffer.from('08aab6e2a6a02b12130a0474656d701001200a6900000000008035401800', 'hex');
const DATA = Buffer.from('08aab6e2a6a02b12071001200150fd011801', 'hex');

test('payloads of Protobuf and Sparkplug B are read', async ({ page }) => {
  const errors = watched(page);
  const broker = await Broker.start();
  const client = await Client.connect(broker.mqttPort, 'edge');
  const timer = setInterval(() => {
    client.publish('plant/1/reading', READING);
    client.publish('spBv1.0/g/NDATA/n', DATA);
  }, 200);
  try {
    await signIn(page, broker, '#/topics/plant/1/reading');
    const payload = page.locator('pre');
    await page.getByRole('button', { name: 'Protobuf' }).click();
    await expect(payload).toContainText('1: 21');
    await page.getByRole('button', { name: 'Give a schema…' }).click();
    await page.getByLabel('Schema (text of a .proto file)').fill('message {');
    await expect(page.getByRole('alert')).toContainText('The schema cannot be read');
    await page.getByLabel('Schema (text of a .proto file)').fill(SCHEMA);
    await page.getByLabel('For the topics').fill('plant/+/reading');
    await accessible(page);
    await page.getByRole('button', { name: 'Keep the schema' }).click();
    await expect(payload).toContainText('"temperature": 21');
    await page.reload();
    // The schema is kept, and the form is taken from it.
    await expect(payload).toContainText('"unit": "C"');

    await go(page, broker, 'topics/spBv1.0/g/NDATA/n');
    await expect(payload).toContainText('"value": -3');
    await expect(page.getByText('Some metrics have an alias only.')).toBeVisible();
    await expect(payload).not.toContainText('"name"');
    client.publish('spBv1.0/g/NBIRTH/n', BIRTH);
    await expect(payload).toContainText('"name": "temp"');
    expect(errors).toEqual([]);
  } finally {
    clearInterval(timer);
    client.close();
    await broker.stop();
  }
});
