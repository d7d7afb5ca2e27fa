// Writes src/api/schema.d.ts, the types of the interface, from the broker's own description of it.
import { writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const source = new URL('../../docs/api/openapi.json', import.meta.url);
const types = astToString(await openapiTS(source, { defaultNonNullable: false }));
const text = `// Written by "npm run generate" from docs/api/openapi.json. Do not edit.\n\n${types}`;
await writeFile(new URL('../src/api/schema.d.ts', import.meta.url), text);
