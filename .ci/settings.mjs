// The types of the settings that the gateway makes of a document, generated from the JSON Schema.
// Prints the source, or writes it to src/config/settings.ts with --write. `npm run reference` calls
// it. It imports TypeScript: `node --import tsx .ci/settings.mjs`.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { fieldName, resolved } from '../src/config/document/schema-part.ts'
import { root } from './prepare.mjs'

const file = join(root, 'src', 'config', 'settings.ts')
const schema = JSON.parse(readFileSync(join(root, 'schemas', 'gateway.schema.json'), 'utf8'))

const head = `// Generated from schemas/gateway.schema.json by \`npm run reference\`: do not edit. The schema
// describes each setting. Invalid values have been reported and removed, so a required setting may
// be missing, and a list shorter. document/read-settings.ts says what else distinguishes these
// settings from those in the file.

import type { JsonValue } from '../core/claims.ts'
import type { Formats } from './document/formats.ts'
import type { Rate } from './quantities.ts'`

/** Name of a type → its declaration, in the order of the schema. */
const declarations = new Map()

/** `per_client` → `PerClient` */
const pascal = (name) => name.replaceAll(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase())
const nameOfReference = ($ref) => $ref.replace('#/definitions/', '')
const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value))
const union = (types) => [...new Set(types)].join(' | ')

/**
 * The TypeScript type of a part of the schema.
 * @param path the names on the way to it: a map of settings is named after them
 */
function typeOf(part, path) {
  if (part.quantity !== undefined) return part.quantity === 'rate' ? 'Rate' : 'number'
  if (part.$ref !== undefined && part.format === undefined) return typeOfDefinition(nameOfReference(part.$ref))
  if (part.$ref !== undefined) return typeOf({ ...resolved(part, schema), $ref: undefined }, path)
  if (part.const !== undefined) return literal(part.const)
  if (part.enum !== undefined) return union(part.enum.map(literal))
  // A short form is written out, except for false.
  const isLong = (type) => part.short === undefined || type === 'object' || type === 'boolean'
  const types = [part.type]
    .flat()
    .filter(isLong)
    .map((type) => {
      if (part.format !== undefined && type !== 'array') return `Formats['${part.format}']`
      switch (type) {
        case 'string':
          return textType(part)
        case 'integer':
        case 'number':
          return 'number'
        case 'boolean':
          return part.short === undefined ? type : 'false'
        case 'null':
          return type
        case 'array':
          return listType(typeOf(part.items, path))
        case 'object':
          return mapType(part, path)
        default:
          throw new Error(`${path.join('.')}: a part of the schema needs a type`)
      }
    })
  return union(types)
}

function listType(members) {
  return `readonly ${members.includes(' ') ? `(${members})` : members}[]`
}

/** A pattern such as `^auto$` allows one text only. */
function textType({ pattern }) {
  const only = /^\^(\w+)\$$/.exec(pattern ?? '')?.[1]
  return only === undefined ? 'string' : literal(only)
}

function mapType(part, path) {
  if (part.properties === undefined && part.then !== undefined) return typeOf(part.then, path)
  if (part.properties !== undefined) return declareMap(part, path)
  const members = part.additionalProperties === undefined ? 'JsonValue' : typeOf(part.additionalProperties, path)
  return `Readonly<Record<string, ${members}>>`
}

/** A map of settings has the name of its path, such as `LimitsPerClientSettings`. */
const nameOfMap = (path) => `${pascal(path.join('_')) || 'Gateway'}Settings`

function declareMap(part, path) {
  const name = nameOfMap(path)
  // Its place in the file is before the maps within it.
  declarations.set(name, '')
  const members = Object.entries(part.properties).map(([setting, written]) => {
    const isPresent = (written.default ?? written.standIn) !== undefined
    const type = typeOf(written, [...path, setting])
    const field = fieldName(setting, resolved(written, schema))
    return `  readonly ${/^\w+$/.test(field) ? field : `'${field}'`}${isPresent ? `: ${type}` : `?: ${type} | undefined`}\n`
  })
  declarations.set(name, `export interface ${name} {\n${members.join('')}}`)
  return name
}

function typeOfDefinition(name) {
  const map = nameOfMap([name])
  // A map that contains itself refers to its name.
  return declarations.has(map) ? map : typeOf(schema.definitions[name], [name])
}

/** The source of src/config/settings.ts. */
async function source() {
  declareMap(schema, [])
  const style = await resolveConfig(file)
  const types = [...declarations.values()].join('\n\n')
  return format(`${head}\n\n${types}\n`, { ...style, parser: 'typescript' })
}

const text = await source()
if (process.argv.includes('--write')) writeFileSync(file, text)
else process.stdout.write(text)
