import { readFileSync } from 'node:fs'

// The path is the same from src/config/document and from dist/config/document.
const schemaFile = new URL('../../../schemas/gateway.schema.json', import.meta.url)

/** The schema as it is delivered: JSON Schema, draft-07. */
export function schemaText(): string {
  return readFileSync(schemaFile, 'utf8')
}
