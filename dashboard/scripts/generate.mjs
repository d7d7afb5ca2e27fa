// Writes src/api/schema.d.ts, the types of the interface, from the broker's own description of it.
import { writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

export async function schemaTypes() {
  const source = new URL('../../docs/api/openapi.json', import.meta.url);
  const types = astToString(await openapiTS(source, { defaultNonNullable: false }));
  return `// Written by "npm run generate" from docs/api/openapi.json. Do not edit.\n\n${types}`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  await writeFile(new URL('../src/api/schema.d.ts', import.meta.url), await schemaTypes());
}
