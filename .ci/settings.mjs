// The types of the settings as they are written in YAML, generated from the JSON Schema. Prints the
// source, or writes it to src/config/settings.ts with --write. `npm run reference` calls it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format, resolveConfig } from 'prettier'
import { root } from './prepare.mjs'

const file = join(root, 'src', 'config', 'settings.ts')
const schema = JSON.parse(readFileSync(join(root, 'schemas', 'gateway.schema.json'), 'utf8'))

const head = `// Generated from schemas/gateway.schema.json by \`npm run reference\`: do not edit.
// These types describe a document after validation. Invalid values have been reported and removed,
// so a required setting may be missing, and a list may have gaps. Defaults have been filled in.
// The schema describes each setting.

import type { JsonValue } from '../core/claims.ts'

/** A list. An invalid entry leaves a gap, so that the other entries keep their index. */
export type List<T> = readonly (T | undefined)[]`

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
  if (part.$ref !== undefined) return typeOfDefinition(nameOfReference(part.$ref))
  if (part.const !== undefined) return literal(part.const)
  if (part.enum !== undefined) return union(part.enum.map(literal))
  const types = [part.type].flat().map((type) => {
    switch (type) {
      case 'string':
        return textType(part)
      case 'integer':
      case 'number':
        return 'number'
      case 'boolean':
      case 'null':
        return type
      case 'array':
        return `List<${typeOf(part.items, path)}>`
      case 'object':
        return mapType(part, path)
      default:
        throw new Error(`${path.join('.')}: a part of the schema needs a type`)
    }
  })
  return union(types)
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
    const hasDefault = written.default !== undefined
    const type = typeOf(written, [...path, setting])
    return `  readonly ${/^\w+$/.test(setting) ? setting : `'${setting}'`}${hasDefault ? '' : '?'}: ${type}\n`
  })
  declarations.set(name, `export interface ${name} {\n${members.join('')}}`)
  return name
}

const definitionTypes = new Map()

function typeOfDefinition(name) {
  const part = schema.definitions[name]
  const known = definitionTypes.get(name)
  if (known !== undefined) return known
  // A map that contains itself refers to its name.
  if (part.properties !== undefined) definitionTypes.set(name, nameOfMap([name]))
  const type = typeOf(part, [name])
  const isText = /^(?:string|number| \| )+$/.test(type)
  if (isText) declarations.set(pascal(name), `export type ${pascal(name)} = ${type}`)
  definitionTypes.set(name, isText ? pascal(name) : type)
  return definitionTypes.get(name)
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
