import { parse, YAMLParseError } from 'yaml'
import { isObject, type JsonObject } from '../../../src/entries/import.ts'

/**
 * The settings in a YAML document.
 * @throws {SyntaxError} names the line; the message quotes no value, because it may be a secret
 */
export function yamlMap(text: string): JsonObject {
  try {
    const document: unknown = parse(text, { merge: true })
    if (isObject(document)) return document
  } catch (error) {
    // The message of the error quotes the line.
    const line = error instanceof YAMLParseError ? error.linePos?.[0].line : undefined
    throw new SyntaxError(line === undefined ? 'it is invalid YAML' : `line ${line} is invalid YAML`)
  }
  throw new SyntaxError('it is not a map of settings')
}
