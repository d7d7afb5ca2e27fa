export function schemaTypes(): Promise<string>;
